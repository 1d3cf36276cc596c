package deploy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"skerry/internal/machine/host"
	"skerry/systems/hydra"
	hydradns "skerry/systems/hydra/dns"
)

// TestMain lets deployments start the test binary as a service: it listens on the service's addresses and
// reports ready.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"node", "lb", "wallet", "dns"}, os.Args[1]) {
		os.Exit(stand(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// stand runs a stand-in for a service.
func stand(args []string) int {
	listen := ""
	if i := slices.Index(args, "--listen"); i > 0 {
		listen = args[i+1]
	}
	if args[0] == "node" {
		c, err := hydra.LoadConfig(args[2])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		listen = c.Listen
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if args[0] == "dns" {
		server := &dns.Server{Addr: listen, Net: "tcp", Handler: dns.HandlerFunc(answer)}
		go func() { _ = server.ListenAndServe() }()
	} else {
		server := &http.Server{Addr: listen, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
		go func() { _ = server.ListenAndServe() }()
	}
	<-ctx.Done()
	return 0
}

// answer resolves every name to an address without a listener and to the address of a balancer.
func answer(w dns.ResponseWriter, q *dns.Msg) {
	m := new(dns.Msg).SetReply(q)
	for _, addr := range []string{"127.0.0.1", "127.0.0.2"} {
		m.Answer = append(m.Answer, &dns.A{
			Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.ParseIP(addr),
		})
	}
	_ = w.WriteMsg(m)
}

// TestDoor checks that a browser's connection goes to the first reachable address of the name and is closed when
// the door closes.
func TestDoor(t *testing.T) {
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	site.Listener.Close()
	site.Listener = l
	site.Start()
	defer site.Close()
	namer := &dns.Server{Handler: dns.HandlerFunc(answer)}
	if namer.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	go func() { _ = namer.ActivateAndServe() }()
	defer namer.Shutdown()
	from, err := host.NewLoopback("names", "names", "127.0.0.1", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d, err := OpenDoor(t.Context(), "127.0.0.1:0", from, namer.Listener.Addr().String(), "wallet.test", l.Addr().(*net.TCPAddr).Port)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(d.URL(), "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || string(text) != "hello" {
		t.Errorf("the door forwarded %q, %v", text, err)
	}
	if err := d.Close(); err != nil { // although the connection is still open
		t.Error(err)
	}
	if _, err := http.Get(d.URL()); err == nil {
		t.Error("the connection is still open")
	}
}

// launch starts a deployment of two clouds with a member each.
func launch(t *testing.T, o Options, restart time.Duration) *Deployment {
	t.Helper()
	o.Dir = t.TempDir()
	layout, err := LayoutOnLoopback(o.Dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	o.Exe, o.Zone, o.Wallet = os.Args[0], "hydra.test", true
	d, err := Launch(t.Context(), layout, o, restart, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d
}

func state(d *Deployment, name string) State {
	for _, s := range d.States() {
		if s.Name == name {
			return s
		}
	}
	return State{}
}

func TestDeploymentLifecycle(t *testing.T) {
	d := launch(t, Options{}, 0)
	var all []string
	for _, s := range d.States() {
		if !s.Running || s.PID == 0 {
			t.Errorf("%+v is not running", s)
		}
		all = append(all, s.Name)
	}
	if want := "aws-1 gcp-1 witness lb-aws lb-gcp wallet-aws wallet-gcp dns"; strings.Join(all, " ") != want {
		t.Errorf("started %v, want %s", all, want)
	}
	of := func(s Service) bool { return s.Cloud == "aws" }
	before := state(d, "wallet-aws").PID
	if err := d.Kill(of); err != nil {
		t.Fatal(err)
	}
	if state(d, "aws-1").Running || state(d, "lb-aws").Running || !state(d, "gcp-1").Running {
		t.Errorf("after the loss of aws: %+v", d.States())
	}
	if err := d.Revive(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	if s := state(d, "wallet-aws"); !s.Running || s.PID == before {
		t.Errorf("after the return of aws: %+v", s)
	}
	pid := state(d, "aws-1").PID
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(pid, 0); err == nil {
		t.Error("a process is still running")
	}
}

func TestExitedServiceIsRestarted(t *testing.T) {
	d := launch(t, Options{}, 10*time.Millisecond)
	before := state(d, "dns").PID
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if s := state(d, "dns"); s.Running && s.PID != before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the service was not restarted")
		}
	}
}

// TestFiles checks that members and the DNS server can parse their generated configurations.
func TestFiles(t *testing.T) {
	o := Options{Dir: t.TempDir(), Zone: "hydra.test", Prefer: "aws", Secure: true, Wallet: true, MaxLog: 8 << 20,
		Drain: 250 * time.Millisecond}
	layout, err := LayoutOnLoopback(o.Dir, 2)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second launch reuses the directory
		services, err := PlanServices(t.Context(), layout, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range services {
			switch s.Kind {
			case Member, Witness:
				c, err := hydra.LoadConfig(s.Args[2])
				if err != nil {
					t.Fatalf("%s: %v", s.Name, err)
				}
				if c.Name != s.Name || len(c.Members) != 5 || c.Certificate == "" || c.PreferCloud != "aws" || int64(c.MaxLog) != o.MaxLog ||
					c.Witness != (s.Kind == Witness) {
					t.Errorf("%s: %+v", s.Name, c)
				}
				if !c.Witness && c.Database != "sqlite:"+filepath.Join(o.Dir, c.Cloud+"-1", "hydra.db") {
					t.Errorf("%s has the database %s", s.Name, c.Database)
				}
			case DNSServer:
				zone, err := hydradns.Load(s.Args[1])
				if err != nil || len(zone.Names) != 2 || len(zone.Names[1].Targets) != 2 {
					t.Errorf("%+v, %v", zone, err)
				}
			case Balancer:
				if n := strings.Count(strings.Join(s.Args, " "), "--member"); n != 4 || !slices.Contains(s.Args, "--token-file") {
					t.Errorf("%s: %v", s.Name, s.Args)
				}
			}
		}
	}
}

func TestFailedProcessStart(t *testing.T) {
	o := Options{Dir: t.TempDir(), Zone: "hydra.test", Exe: "/bin/false"}
	layout, err := LayoutOnLoopback(o.Dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Launch(t.Context(), layout, o, 0, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("error %v", err)
	}
}

// TestLookupOfASlowServer checks that Lookup waits for a slow DNS server until the caller's deadline.
func TestLookupOfASlowServer(t *testing.T) {
	for name, tt := range map[string]struct {
		has, takes time.Duration
		ok         bool
	}{
		"in time":      {8 * time.Second, 5 * time.Second, true},
		"too late":     {4 * time.Second, 5 * time.Second, false},
		"at most 10 s": {time.Hour, 20 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.has)
				defer cancel()
				asker, server := net.Pipe()
				defer server.Close()
				var serving sync.WaitGroup
				defer serving.Wait()
				serving.Go(func() {
					s := &dns.Conn{Conn: server}
					q, err := s.ReadMsg()
					if err != nil {
						return // the caller has given up
					}
					time.Sleep(tt.takes)
					a := new(dns.Msg).SetReply(q)
					a.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET},
						A: net.IPv4(10, 0, 0, 7)}}
					_ = s.WriteMsg(a)
				})
				dial := func(context.Context, string, string) (net.Conn, error) { return asker, nil }
				all, err := Lookup(ctx, dial, "10.0.0.1:53", "wallet.test")
				if tt.ok && (err != nil || len(all) != 1 || all[0] != netip.MustParseAddr("10.0.0.7")) || !tt.ok && err == nil {
					t.Errorf("Lookup() = %v, %v", all, err)
				}
			})
		})
	}
}
