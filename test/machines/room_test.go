package machines

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/kernel/netns"
	"skerry/internal/machine/inventory"
)

// room has simulated machines: each is a network namespace of this machine, connected by a bridge, with directories for
// labs. The namespaces have no name and disappear with this process.
//
//	m1 10.99.0.1 ──┐
//	m2 10.99.0.2 ──┼── bridge, in a namespace of its own
//	m3 10.99.0.3 ──┘
type room struct {
	dir      string
	spaces   []*os.File
	machines inventory.File
}

func newRoom(exe string, n int) (r *room, err error) {
	r = &room{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("simulating %d machines: %w", n, err), r.close())
		}
	}()
	if r.dir, err = os.MkdirTemp("", "skerry-bench-"); err != nil {
		return r, err
	}
	middle, err := r.space(func(h *netlink.Handle) error {
		return h.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "bridge", Flags: unix.IFF_UP}})
	})
	if err != nil {
		return r, err
	}
	for i := 1; i <= n; i++ {
		addr := fmt.Sprintf("10.99.%d.%d", i>>8, i&0xff)
		at, err := r.space(func(h *netlink.Handle) error { return plug(h, middle, fmt.Sprint("port", i), addr+"/16") })
		if err != nil {
			return r, err
		}
		name := fmt.Sprint("m", i)
		if err := netns.OnNewThread(func() error { return joined(path(middle), fmt.Sprint("port", i)) }); err != nil {
			return r, err
		}
		r.machines.Machines = append(r.machines.Machines, inventory.Entry{Name: name, Addr: addr, Command: []string{
			"env", "SKERRY_STATE=" + filepath.Join(r.dir, name, "state"), "SKERRY_DATA=" + filepath.Join(r.dir, name, "data"),
			"nsenter", "--net=" + path(at), exe, "agent", "machine",
		}})
	}
	return r, nil
}

// space creates a namespace and calls f in it.
func (r *room) space(f func(h *netlink.Handle) error) (file *os.File, err error) {
	err = netns.OnNewThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		var err error
		if file, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		r.spaces = append(r.spaces, file)
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer h.Close()
		lo, err := h.LinkByName("lo")
		if err != nil {
			return err
		}
		return errors.Join(h.LinkSetUp(lo), f(h))
	})
	return file, err
}

// path is a path that other processes can open.
func path(space *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), space.Fd()) }

// plug creates a cable from the caller's namespace to another one.
func plug(h *netlink.Handle, middle *os.File, port, addr string) error {
	if err := h.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: port, PeerNamespace: netlink.NsFd(int(middle.Fd()))}); err != nil {
		return err
	}
	eth, err := h.LinkByName("eth0")
	if err != nil {
		return err
	}
	a, err := netlink.ParseAddr(addr)
	if err != nil {
		return err
	}
	return errors.Join(h.AddrAdd(eth, a), h.LinkSetUp(eth))
}

// joined connects a port to the bridge.
func joined(middle, port string) error {
	return netns.Do(middle, func() error {
		bridge, err := netlink.LinkByName("bridge")
		if err != nil {
			return err
		}
		cable, err := netlink.LinkByName(port)
		if err != nil {
			return err
		}
		return errors.Join(netlink.LinkSetMaster(cable, bridge), netlink.LinkSetUp(cable))
	})
}

func (r *room) close() error {
	errs := []error{os.RemoveAll(r.dir)}
	for _, s := range r.spaces {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
