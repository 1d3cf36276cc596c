package transport

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/kernel/netns"
	"skerry/internal/machine"
	"skerry/internal/machine/fleet"
	"skerry/internal/machine/host"
	"skerry/internal/machine/inventory"
	"skerry/test/machinetest"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// rack is two machines, each a network namespace, connected by a cable. Node a is the first machine, and node b is on
// the second.
type rack struct {
	t      *testing.T
	dir    string
	lab    string
	spaces [2]*testkit.NS
	addrs  [2]netip.Addr
	before string // initial state of the first machine's network
}

func newRack(t *testing.T) *rack {
	t.Helper()
	testkit.Need(t, testkit.Root, testkit.TUN)
	r := &rack{t: t, dir: t.TempDir(), lab: fmt.Sprintf("whole-%d-%d", os.Getpid(), sites.Add(1))}
	for i := range r.spaces {
		r.spaces[i] = testkit.Namespace(t)
	}
	testkit.VethPair(t, r.spaces[0], r.spaces[1])
	for i, s := range r.spaces {
		r.addrs[i] = netip.MustParseAddr(s.Addr())
	}
	r.before = r.network()
	return r
}

func (r *rack) machine(i int) inventory.Entry {
	name := fmt.Sprintf("rack-%d", i+1)
	return inventory.Entry{Name: name, Command: []string{
		"env", "SKERRY_STATE=" + filepath.Join(r.dir, name+"-state"), "SKERRY_DATA=" + filepath.Join(r.dir, name+"-data"),
		"nsenter", "--net=" + r.spaces[i].Path(), options(r.t).Exe, "agent", "machine",
	}}
}

// bring brings up the lab through agents on both machines.
func (r *rack) bring(a, b machine.Machine, done func(machinetest.Step)) (machine.Part, error) {
	r.t.Helper()
	f, err := fleet.New([]fleet.Member{
		{Machine: a, Name: "rack-1", Addr: r.addrs[0], Whole: true},
		{Machine: b, Name: "rack-2", Addr: r.addrs[1]},
	}, map[string]string{"a": "rack-1", "b": "rack-2"})
	if err == nil {
		err = f.DisableEncryption()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return machinetest.Bring(r.t.Context(), f, machine.PartSpec{Lab: r.lab, Owned: true}, done)
}

// network describes the first machine's own network: devices, addresses, routes.
func (r *rack) network() string {
	r.t.Helper()
	var all []string
	err := r.spaces[0].Do(func() error {
		devices, err := netlink.LinkList()
		if err != nil {
			return err
		}
		for _, d := range devices {
			addrs, err := netlink.AddrList(d, netlink.FAMILY_ALL)
			if err != nil {
				return err
			}
			all = append(all, fmt.Sprintf("%s %s %v", d.Type(), d.Attrs().Name, addrs))
		}
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{}, netlink.RT_FILTER_TABLE)
		for _, x := range routes {
			all = append(all, fmt.Sprint(x))
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// left fails the test if the first machine has changed, or if anything of the lab remains.
func (r *rack) left(when string) {
	r.t.Helper()
	if now := r.network(); now != r.before {
		r.t.Errorf("%s: the machine's own network was\n%s\nand is\n%s", when, r.before, now)
	}
	testhost.CheckLeftovers(r.t, r.lab, r.dir)
}

// With a whole machine as a node, packets of the other node reach programs in the machine's own network over the link.
func TestWholeMachineIsANode(t *testing.T) {
	r := newRack(t)
	first, second := reach(t, r.machine(0)), reach(t, r.machine(1))
	p, err := r.bring(first, second, func(machinetest.Step) {})
	if err != nil {
		t.Fatal(err)
	}
	addr := map[string]netip.Addr{}
	for _, n := range p.Facts().Nodes {
		addr[n.Name] = netip.MustParseAddr(n.Addr)
	}
	ways := []machine.Path{{Node: "a", To: addr["b"]}, {Node: "b", To: addr["a"]}}
	got, err := p.MeasureRTT(t.Context(), machine.RTTSpec{Count: 5, Paths: ways})
	if err != nil || len(got) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	for i, g := range got {
		if g.Lost > 0 || slices.Min(g.Samples) < 15*time.Millisecond {
			t.Errorf("round trips from %s: %+v", ways[i].Node, g)
		}
	}
	h, err := p.Host("a")
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	runs, err := h.Start(t.Context(), host.Command{Name: "stat", Path: "/usr/bin/stat", Args: []string{"-L", "-c", "%i", "/proc/self/ns/net"}, Stdout: &said})
	if err != nil {
		t.Fatal(err)
	}
	<-runs.Done()
	if own, err := netns.ID(r.spaces[0].Path()); err != nil || strings.TrimSpace(said.String()) != fmt.Sprint(own) {
		t.Errorf("programs run in namespace %s, the machine's own is %d (%v)", said.String(), own, err)
	}
	if err := h.(host.Controls).MountDisk(1 << 30); err == nil || !strings.Contains(err.Error(), host.ErrWhole.Error()) {
		t.Errorf("a disk in memory for the machine: %v", err)
	}
	if _, err := first.Prepare(t.Context(), machine.PartSpec{Lab: r.lab + "-other", Owned: true, Whole: true}); err == nil || !strings.Contains(err.Error(), "another lab") {
		t.Errorf("the machine became a node of a second lab: %v", err)
	}
	if err := p.Down(t.Context()); err != nil {
		t.Error(err)
	}
	r.left("taken down")
}

// An agent is killed after each step, and the next agent restores the machine's own network.
func TestKilledAgentRestoresWholeMachine(t *testing.T) {
	r := newRack(t)
	for _, step := range []machinetest.Step{machinetest.Prepared, machinetest.Made, machinetest.Linked, machinetest.Kept} {
		first, err := Open(t.Context(), r.machine(0), options(t))
		if err != nil {
			t.Fatal(err)
		}
		second, err := Open(t.Context(), r.machine(1), options(t))
		if err != nil {
			t.Fatal(err)
		}
		die := func() {
			if err := unix.Kill(first.Hello.PID, unix.SIGKILL); err != nil {
				t.Error(err)
			}
			<-first.process.Done()
		}
		p, err := r.bring(first, second, func(s machinetest.Step) {
			if s == step && s != machinetest.Kept {
				die()
			}
		})
		if step == machinetest.Kept {
			if err != nil {
				t.Fatal(err)
			}
			h, err := p.Host("a")
			if err != nil {
				t.Fatal(err)
			}
			// The child clears its environment, as redis-server does with its title.
			if _, err := h.Start(t.Context(), host.Command{Name: "sleep", Path: "/usr/bin/env", Args: []string{"-i", "/bin/sleep", "1000"}}); err != nil {
				t.Fatal(err)
			}
			if now := r.network(); !strings.Contains(now, "lk0") {
				t.Errorf("the machine's own network has no link:\n%s", now)
			}
			die()
		}
		if err := first.Close(); err == nil {
			t.Error("closing a killed agent returned no error")
		}
		_ = second.Close() // its lab is partly removed
		for i := range r.spaces {
			next, err := Open(t.Context(), r.machine(i), options(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := next.Close(); err != nil {
				t.Error(err)
			}
		}
		r.left("killed when " + string(step))
	}
}

// A machine whose own network has the lab's addresses is refused and not changed.
func TestWholeMachineWithLabAddressesIsRejected(t *testing.T) {
	r := newRack(t)
	r.spaces[0].Assign(t, "va", "10.77.0.200/24")
	r.before = r.network()
	p, err := r.bring(reach(t, r.machine(0)), reach(t, r.machine(1)), func(machinetest.Step) {})
	if err == nil || !strings.Contains(err.Error(), "10.77.0.0/24") {
		t.Errorf("with an overlapping network: %v", err)
	}
	if p != nil {
		if err := p.Down(t.Context()); err != nil {
			t.Error(err)
		}
	}
	r.left("refused")
}
