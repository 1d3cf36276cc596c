package lab

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"skerry/internal/lab/overlay/tinc"
	"skerry/internal/lab/service"
	"skerry/internal/machine/host"
	"skerry/internal/topology"
	"skerry/test/testkit"
)

// inner is the port on which the members of these tests listen, awhile the timeout of waits.
const (
	inner  = 7000
	awhile = time.Minute
)

// serviceOf returns the service of a configuration.
func serviceOf(kind, members string) topology.Service {
	return topology.Service{Kind: kind, Name: "db", Members: members, Low: 30000, High: 30100, Balance: "random", Check: 50 * time.Millisecond}
}

// withService is a lab with three members and a client, with a service.
func withService(t *testing.T, name string, s topology.Service) Config {
	t.Helper()
	if s.Kind == topology.Central {
		testkit.Need(t, testkit.Installed(service.Recipe))
	}
	c := config(t, name)
	c.Topology = ring(4, 0) // n3 is the client
	for _, pair := range [][2]int{{0, 2}, {1, 3}} {
		c.Topology.Links = append(c.Topology.Links, topology.Link{
			ID: fmt.Sprintf("n%d~n%d", pair[0], pair[1]), A: fmt.Sprint("n", pair[0]), B: fmt.Sprint("n", pair[1])})
	}
	c.Topology.Service, c.Members, c.Ports = s, []string{"n0", "n1", "n2"}, []int{inner}
	var err error
	if c.Balancer, err = service.FindBalancer(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return c
}

// greeter answers every connection with its name and echoes the input.
type greeter struct {
	listener net.Listener
	done     sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

func startGreeter(t *testing.T, h host.Host) *greeter {
	t.Helper()
	g := &greeter{}
	if err := h.(host.NamespaceHost).Do(func() (err error) {
		g.listener, err = net.Listen("tcp4", net.JoinHostPort(host.Listen(h), strconv.Itoa(inner)))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	g.done.Go(func() {
		for {
			conn, err := g.listener.Accept()
			if err != nil {
				return
			}
			g.mu.Lock()
			g.conns = append(g.conns, conn)
			g.mu.Unlock()
			g.done.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(awhile)) // missing data fails the test
				fmt.Fprintln(conn, h.Name())
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(g.stop)
	return g
}

// stop ends it like the end of its process.
func (g *greeter) stop() {
	g.listener.Close()
	g.mu.Lock()
	for _, c := range g.conns {
		c.Close()
	}
	g.mu.Unlock()
	g.done.Wait()
}

// greeters are the greeters of all members.
func greeters(t *testing.T, l *Lab) map[string]*greeter {
	t.Helper()
	all := map[string]*greeter{}
	for _, name := range []string{"n0", "n1", "n2"} {
		h, err := l.Member(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = startGreeter(t, h)
	}
	return all
}

// exchange connects from a host and returns the name of the greeter. The sent bytes must return completely.
func exchange(from host.Host, address string, sent []byte) (who string, err error) {
	err = from.(host.NamespaceHost).Do(func() error {
		conn, err := net.DialTimeout("tcp4", address, 5*time.Second)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(awhile)); err != nil {
			return err
		}
		// HAProxy treats a client that closes its side early without data as aborted, so the greeting comes first.
		in := bufio.NewReader(conn)
		name, err := in.ReadString('\n')
		if err != nil {
			return fmt.Errorf("waiting for the greeting: %w", err)
		}
		sending := make(chan error, 1)
		go func() {
			_, err := conn.Write(sent)
			sending <- errors.Join(err, conn.(*net.TCPConn).CloseWrite())
		}()
		echoed, err := io.ReadAll(in)
		if err := errors.Join(err, <-sending); err != nil {
			return err
		}
		if who = strings.TrimSpace(name); !bytes.Equal(echoed, sent) {
			return fmt.Errorf("got %d bytes, want %d", len(echoed), len(sent))
		}
		return nil
	})
	return who, err
}

// everywhere are all nodes and all members.
func everywhere(t *testing.T, l *Lab) map[string]host.Host {
	t.Helper()
	all := map[string]host.Host{}
	for _, h := range l.Hosts() {
		all["node "+h.Name()] = h
		if m, err := l.Member(h.Name()); err != nil {
			t.Fatal(err)
		} else if m != h {
			all["member "+h.Name()] = m
		}
	}
	return all
}

// addressOf returns the address at which others reach a member.
func addressOf(t *testing.T, l *Lab, node string) string {
	t.Helper()
	m, err := l.Member(node)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(m.Addr(), strconv.Itoa(host.Port(m, inner)))
}

// Every node and every member reaches each member at its own address, including itself, with more data than fit in a
// packet.
func TestMembersAreReachable(t *testing.T) {
	payload := make([]byte, 200<<10)
	rand.Read(payload)
	auto := serviceOf(topology.HostPort, topology.Own)
	auto.Auto = true
	for name, s := range map[string]topology.Service{
		"host-port": serviceOf(topology.HostPort, topology.Own), "host-port-auto": auto,
		"node-port": serviceOf(topology.NodePort, topology.Own), "service-ip": serviceOf(topology.ServiceIP, topology.Own),
		"service-ip-shared": serviceOf(topology.ServiceIP, topology.Shared), "central": serviceOf(topology.Central, topology.Own),
		"none": {},
	} {
		t.Run(name, func(t *testing.T) {
			l := mustUp(t, withService(t, "svc", s))
			greeters(t, l)
			for from, h := range everywhere(t, l) {
				for _, to := range []string{"n0", "n1", "n2"} {
					who, err := exchange(h, addressOf(t, l, to), payload)
					if err != nil || who != to {
						t.Errorf("from %s to %s at %s: got a reply from %q, %v", from, to, addressOf(t, l, to), who, err)
					}
				}
			}
		})
	}
}

// The shared service forwards to every member that accepts connections, and to no other.
func TestSharedServiceUsesHealthyMembers(t *testing.T) {
	for _, kind := range []string{topology.NodePort, topology.ServiceIP, topology.Central} {
		t.Run(kind, func(t *testing.T) {
			l := mustUp(t, withService(t, "shared", serviceOf(kind, topology.Shared)))
			all := greeters(t, l)
			plan, ok := l.Service()
			if !ok || len(plan.ContactPoints(inner)) == 0 {
				t.Fatalf("contact %v", plan.ContactPoints(inner))
			}
			client, err := l.Host("n3")
			if err != nil {
				t.Fatal(err)
			}
			answering := func() map[string]bool {
				seen := map[string]bool{}
				for i := range 60 {
					at := plan.ContactPoints(inner)
					who, err := exchange(client, at[i%len(at)], nil)
					if err != nil {
						who = err.Error()
					}
					seen[who] = true
				}
				return seen
			}
			await := func(when string, want ...string) {
				t.Helper()
				var got map[string]bool
				for deadline := time.Now().Add(awhile); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
					if got = answering(); len(got) != len(want) {
						continue
					}
					missing := false
					for _, w := range want {
						missing = missing || !got[w]
					}
					if !missing {
						return
					}
				}
				t.Errorf("%s: %v answered, want %v", when, got, want)
			}
			await("at first", "n0", "n1", "n2")
			all["n1"].stop()
			await("after one member died", "n0", "n2")
			m, err := l.Member("n1")
			if err != nil {
				t.Fatal(err)
			}
			startGreeter(t, m)
			await("after it returned", "n0", "n1", "n2")
			for from, h := range everywhere(t, l) { // the member itself may be chosen
				for range 6 {
					if _, err := exchange(h, plan.ContactPoints(inner)[0], nil); err != nil {
						t.Errorf("from %s: %v", from, err)
					}
				}
			}
		})
	}
}

func TestRoundRobinAlternatesMembers(t *testing.T) {
	s := serviceOf(topology.ServiceIP, topology.Shared)
	s.Balance, s.Check = "round-robin", 0
	l := mustUp(t, withService(t, "robin", s))
	greeters(t, l)
	client, err := l.Host("n3")
	if err != nil {
		t.Fatal(err)
	}
	plan, _ := l.Service()
	counted := map[string]int{}
	for range 9 {
		who, err := exchange(client, plan.ContactPoints(inner)[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		counted[who]++
	}
	for _, n := range []string{"n0", "n1", "n2"} {
		if counted[n] != 3 {
			t.Errorf("9 connections went to %v", counted)
			break
		}
	}
}

// A process on any node resolves the name of the service.
func TestServiceNameResolves(t *testing.T) {
	l := mustUp(t, withService(t, "name", serviceOf(topology.ServiceIP, topology.Own)))
	plan, _ := l.Service()
	for name, want := range map[string]string{
		"db.skerry.internal": plan.Front[0].String(), "n1.db.skerry.internal": plan.Nodes[1].Member.VIP.String(),
	} {
		for _, node := range []string{"n0", "n3"} {
			out, err := shell(t, l, node, "getent hosts "+name)
			if got, _, _ := strings.Cut(out, " "); err != nil || got != want {
				t.Errorf("%s on %s is %q (%v), want %s", name, node, out, err, want)
			}
		}
	}
}

// Ports in use, here by a router, are not assigned, and a static port in use is an error.
func TestTakenPortsAreSkippedOrReported(t *testing.T) {
	testkit.Need(t, testkit.Installed(tinc.Recipe))
	s := serviceOf(topology.HostPort, topology.Own)
	s.Auto, s.Low = true, 655 // tinc's
	c := withService(t, "taken", s)
	c.Topology.Overlay = topology.Overlay{Kind: tinc.Name, Settings: map[string]map[string]any{tinc.Name: {"ping_interval": "1s",
		"ping_timeout": "1s"}}}
	var err error
	if c.Overlay, err = NewOverlay(t.Context(), c.Topology.Overlay); err != nil {
		t.Fatal(err)
	}
	l := mustUp(t, c)
	m, err := l.Member("n0")
	if err != nil {
		t.Fatal(err)
	}
	if p := host.Port(m, inner); p <= 655 || p > 700 {
		t.Errorf("published port %d is tinc's or unexpected", p)
	}
	if err := l.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Topology.Service.Auto, c.Topology.Service.Publish = false, map[int]int{inner: 655}
	if failed, err := Up(t.Context(), c); !errors.Is(err, service.ErrPort) || !strings.Contains(err.Error(), "655 of n0") {
		t.Errorf("publishing a port in use: %v, %v", failed, err)
	}
	noTraces(t, c)
}

// Another process finds the containers of a persistent lab.
func TestPersistentLabKeepsService(t *testing.T) {
	c := withService(t, "stays", serviceOf(topology.NodePort, topology.Own))
	c.Ephemeral = false
	l := mustUp(t, c)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Attach(t.Context(), c.StateDir, c.Name)
	if err != nil {
		t.Fatal(err)
	}
	greeters(t, again)
	if who, err := exchange(again.Hosts()[3], addressOf(t, again, "n1"), nil); err != nil || who != "n1" {
		t.Errorf("%q, %v", who, err)
	}
	if err := again.Down(context.Background()); err != nil {
		t.Error(err)
	}
	noTraces(t, c)
}
