package linkbench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/kernel/netns"
	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/link/userspace"
	"skerry/internal/machine/network"
)

type namespace struct {
	ns *os.File
}

// newNamespace creates a namespace that exists as long as its file is open.
func newNamespace() (*namespace, error) {
	p := &namespace{}
	err := netns.OnNewThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		if err := network.Apply(network.Settings(false, false, nil)); err != nil {
			return err
		}
		var err error
		p.ns, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	return p, err
}

func (p *namespace) close() error { return p.ns.Close() }

func (p *namespace) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), p.ns.Fd()) }

// Do calls f with its thread inside the namespace.
func (p *namespace) Do(f func() error) error {
	return netns.OnNewThread(func() error {
		if err := unix.Setns(int(p.ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter a network namespace: %w", err)
		}
		return f()
	})
}

func (p *namespace) addAddress(device, cidr string) error {
	return p.Do(func() error {
		dev, err := netlink.LinkByName(device)
		if err != nil {
			return fmt.Errorf("find %s: %w", device, err)
		}
		addr, err := netlink.ParseAddr(cidr)
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(dev, addr); err != nil {
			return fmt.Errorf("give %s the address %s: %w", device, cidr, err)
		}
		return netlink.LinkSetUp(dev)
	})
}

type endpoint struct {
	*namespace
	addr string
}

// Addr is the place's address on the link.
func (s *endpoint) Addr() string { return s.addr }

type benchLink struct {
	id   string
	a, b *endpoint
	ab   link.Quality
	ba   link.Quality
}

func directedPairs(wires []*benchLink) []probe.Pair {
	var all []probe.Pair
	for _, w := range wires {
		all = append(all, probe.Pair{From: w.a, To: w.b}, probe.Pair{From: w.b, To: w.a})
	}
	return all
}

type testbed struct {
	engine     *userspace.Engine
	namespaces []*namespace
	links      []*benchLink
}

// newTestbed creates namespaces and links. edges are pairs of namespace indices.
func (b *bench) newTestbed(ctx context.Context, places int, edges [][2]int, ab, ba []link.Quality) (w *testbed, err error) {
	w = &testbed{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
			w = nil
		}
	}()
	for range places {
		p, err := newNamespace()
		if err != nil {
			return w, err
		}
		w.namespaces = append(w.namespaces, p)
	}
	if w.engine, err = b.startEmulator(ctx); err != nil {
		return w, err
	}
	specs := make([]link.Spec, len(edges))
	for i, e := range edges {
		device := fmt.Sprintf("l%d", i)
		specs[i] = link.Spec{
			ID: fmt.Sprintf("link-%d", i), AB: ab[i], BA: ba[i],
			A: link.End{Netns: w.namespaces[e[0]].path(), Device: device},
			B: link.End{Netns: w.namespaces[e[1]].path(), Device: device},
		}
		near, far := net.IPv4(10, 99, byte(i), 1).String(), net.IPv4(10, 99, byte(i), 2).String()
		w.links = append(w.links, &benchLink{
			id: specs[i].ID, ab: ab[i], ba: ba[i],
			a: &endpoint{w.namespaces[e[0]], near}, b: &endpoint{w.namespaces[e[1]], far},
		})
	}
	if err := w.engine.Create(ctx, specs); err != nil {
		return w, err
	}
	for i, wire := range w.links {
		device := specs[i].A.Device
		if err := wire.a.addAddress(device, wire.a.addr+"/30"); err != nil {
			return w, err
		}
		if err := wire.b.addAddress(device, wire.b.addr+"/30"); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (b *bench) newPairTestbed(ctx context.Context, q link.Quality) (*testbed, error) {
	return b.newTestbed(ctx, 2, [][2]int{{0, 1}}, []link.Quality{q}, []link.Quality{{Latency: q.Latency}})
}

func (w *testbed) close() error {
	var errs []error
	if w.engine != nil {
		errs = append(errs, w.engine.Close())
	}
	for _, p := range w.namespaces {
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}
