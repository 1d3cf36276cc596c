package overlay_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/lab"
	"skerry/internal/lab/overlay"
	"skerry/internal/link"
	"skerry/internal/machine/host"
)

// whole fails the test if the lab has lost a process or a link.
func whole(t *testing.T, l *lab.Lab) {
	t.Helper()
	if n := l.OverlayRestarts(); n != 0 {
		t.Errorf("%d daemons ended", n)
	}
	select {
	case <-l.EmulatorDone():
		t.Error("the emulator has exited")
	default:
	}
	if _, err := l.Stats(t.Context()); err != nil {
		t.Errorf("the links: %v", err)
	}
}

// Links that fail and return ten times a second, silently and with their carrier, damage neither the routing nor the
// lab.
func TestFlappingLinksKeepRoutingAlive(t *testing.T) {
	tests := map[string]func(*testing.T, *lab.Lab, bool){
		"silent": func(t *testing.T, l *lab.Lab, down bool) { cut(t, l, down, "c", "b") },
		"carrier": func(t *testing.T, l *lab.Lab, down bool) {
			if err := errors.Join(l.Carrier("c", !down), l.Carrier("b", !down)); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, set := range tests {
		t.Run(name, func(t *testing.T) {
			l := fig2(t, newBabel(t))
			within(t, far, "c+d", usesPath(l, "vm0", "vm2", "c+d"))
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for i := range 40 {
				set(t, l, i%2 == 0)
				<-tick.C
			}
			within(t, far, "after the links are stable: c+d", usesPath(l, "vm0", "vm2", "c+d"))
			within(t, far, "an answer", func() error {
				if rtt(t, l, "vm0", "vm2") == 0 {
					return errors.New("none")
				}
				return nil
			})
			whole(t, l)
		})
	}
}

// A link with high loss in one direction is not used in the other direction either.
func TestLinkWithOneWayLossIsAvoided(t *testing.T) {
	l := fig2(t, newBabel(t))
	within(t, far, "c+d", usesPath(l, "vm0", "vm2", "c+d"))
	for _, lossy := range []func(*link.Quality) link.Change{
		func(q *link.Quality) link.Change { return link.Change{ID: "c", AB: q} },
		func(q *link.Quality) link.Change { return link.Change{ID: "c", BA: q} },
	} {
		bad, good := link.Quality{Latency: 20 * time.Millisecond, Loss: 0.8}, link.Quality{Latency: 20 * time.Millisecond}
		if err := l.Set(t.Context(), []link.Change{lossy(&bad)}); err != nil {
			t.Fatal(err)
		}
		within(t, far, "lossy one way: b", usesPath(l, "vm0", "vm2", "b"))
		if err := l.Set(t.Context(), []link.Change{lossy(&good)}); err != nil {
			t.Fatal(err)
		}
		within(t, far, "good again: c+d", usesPath(l, "vm0", "vm2", "c+d"))
	}
	whole(t, l)
}

// A node leaves and returns with another address. The others reach it there, and no longer at the old address.
func TestNodeIsReachedAtNewAddress(t *testing.T) {
	const fresh = "10.200.0.9"
	l := fig2(t, newBabel(t))
	within(t, far, "c+d", usesPath(l, "vm0", "vm2", "c+d"))
	vm0, err0 := l.Node("vm0")
	vm1, err1 := l.Node("vm1")
	if err := errors.Join(err0, err1); err != nil {
		t.Fatal(err)
	}
	old := vm1.Addr()
	cut(t, l, true, "c", "d")
	within(t, far, "vm1 is unreachable", func() error {
		if _, err := l.Trace(t.Context(), "vm0", "vm1"); !errors.Is(err, overlay.ErrNoRoute) {
			return fmt.Errorf("a route to vm1: %v", err)
		}
		return nil
	})
	if err := vm1.Do(func() error { return readdress(old, fresh) }); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(vm1.Dir(), "babel", "babeld.conf")
	config, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.ReplaceAll(string(config), old+"/32", fresh+"/32")), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	kill(t, l, "vm1", "babeld")
	cut(t, l, false, "c", "d")
	routes := func() (there map[string]bool, err error) {
		there = map[string]bool{}
		return there, vm0.Do(func() error {
			for _, a := range []string{old, fresh} {
				got, err := netlink.RouteGet(net.ParseIP(a))
				there[a] = err == nil && len(got) > 0
			}
			return nil
		})
	}
	within(t, far, "vm1 is reachable only at its new address", func() error {
		got, err := routes()
		if err != nil {
			return err
		}
		if diff := cmp.Diff(map[string]bool{old: false, fresh: true}, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	within(t, far, "over it again: c+d", usesPath(l, "vm0", "vm2", "c+d"))
	within(t, far, "it answers", func() error {
		err := host.CheckAccepts(t.Context(), vm0, net.JoinHostPort(fresh, "9"), time.Second)
		if errors.Is(err, unix.ECONNREFUSED) { // by the node itself
			return nil
		}
		return err
	})
}

// readdress replaces an address on all devices of the current thread's namespace.
func readdress(old, fresh string) error {
	devices, err := netlink.LinkList()
	if err != nil {
		return err
	}
	for _, d := range devices {
		addresses, err := netlink.AddrList(d, netlink.FAMILY_V4)
		if err != nil {
			return err
		}
		for _, a := range addresses {
			if a.IP.String() != old {
				continue
			}
			next := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(fresh).To4(), Mask: a.Mask}}
			if err := errors.Join(netlink.AddrDel(d, &a), netlink.AddrAdd(d, next)); err != nil {
				return err
			}
		}
	}
	return nil
}
