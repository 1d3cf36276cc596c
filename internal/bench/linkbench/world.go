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

// place is a network namespace.
type place struct {
	ns *os.File
}

// newPlace makes a namespace that lives as long as its file is open.
func newPlace() (*place, error) {
	p := &place{}
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

func (p *place) close() error { return p.ns.Close() }

func (p *place) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), p.ns.Fd()) }

// Do calls f with its thread inside the namespace.
func (p *place) Do(f func() error) error {
	return netns.OnNewThread(func() error {
		if err := unix.Setns(int(p.ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter a network namespace: %w", err)
		}
		return f()
	})
}

// address gives a device an IPv4 address and sets it up.
func (p *place) address(device, cidr string) error {
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

// stand is a place as a link knows it.
type stand struct {
	*place
	addr string
}

// Addr is the place's address on the link.
func (s *stand) Addr() string { return s.addr }

// wire is a link with an address at both ends.
type wire struct {
	id   string
	a, b *stand
	ab   link.Quality
	ba   link.Quality
}

// pairs are both directions of the wires.
func pairs(wires []*wire) []probe.Pair {
	var all []probe.Pair
	for _, w := range wires {
		all = append(all, probe.Pair{From: w.a, To: w.b}, probe.Pair{From: w.b, To: w.a})
	}
	return all
}

// world is places and the links between them, moved by an emulator of its own.
type world struct {
	engine *userspace.Engine
	places []*place
	wires  []*wire
}

// newWorld makes places and joins some of them; edges are pairs of their indices.
func (b *bench) newWorld(ctx context.Context, places int, edges [][2]int, ab, ba []link.Quality) (w *world, err error) {
	w = &world{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
			w = nil
		}
	}()
	for range places {
		p, err := newPlace()
		if err != nil {
			return w, err
		}
		w.places = append(w.places, p)
	}
	if w.engine, err = b.start(ctx); err != nil {
		return w, err
	}
	specs := make([]link.Spec, len(edges))
	for i, e := range edges {
		device := fmt.Sprintf("l%d", i)
		specs[i] = link.Spec{
			ID: fmt.Sprintf("link-%d", i), AB: ab[i], BA: ba[i],
			A: link.End{Netns: w.places[e[0]].path(), Device: device},
			B: link.End{Netns: w.places[e[1]].path(), Device: device},
		}
		near, far := net.IPv4(10, 99, byte(i), 1).String(), net.IPv4(10, 99, byte(i), 2).String()
		w.wires = append(w.wires, &wire{
			id: specs[i].ID, ab: ab[i], ba: ba[i],
			a: &stand{w.places[e[0]], near}, b: &stand{w.places[e[1]], far},
		})
	}
	if err := w.engine.Create(ctx, specs); err != nil {
		return w, err
	}
	for i, wire := range w.wires {
		device := specs[i].A.Device
		if err := wire.a.address(device, wire.a.addr+"/30"); err != nil {
			return w, err
		}
		if err := wire.b.address(device, wire.b.addr+"/30"); err != nil {
			return w, err
		}
	}
	return w, nil
}

// pair is a world of two places and one link.
func (b *bench) pair(ctx context.Context, q link.Quality) (*world, error) {
	return b.newWorld(ctx, 2, [][2]int{{0, 1}}, []link.Quality{q}, []link.Quality{{Latency: q.Latency}})
}

func (w *world) close() error {
	var errs []error
	if w.engine != nil {
		errs = append(errs, w.engine.Close())
	}
	for _, p := range w.places {
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}
