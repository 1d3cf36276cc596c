// Package network is the network of nodes as this machine's kernel has it: a namespace each
// with its settings, and the addresses, routes and states of the devices in it.
package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry/internal/kernel/netns"
)

// loopback is the index of "lo" in every namespace.
const loopback = 1

// Make makes a node's namespace at a path: its loopback device, its address, unless that is
// the zero value, and its kernel settings. The calling thread, which must be a throwaway, is
// in it then.
func Make(path string, addr netip.Addr, settings []Setting) error {
	if err := netns.Create(path); err != nil {
		return err
	}
	return withHandle(func(handle *netlink.Handle) error {
		lo := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: "lo", Index: loopback}}
		if err := handle.LinkSetUp(lo); err != nil {
			return fmt.Errorf("set lo up: %w", err)
		}
		if addr.IsValid() {
			if err := handle.AddrAdd(lo, &netlink.Addr{IPNet: hostNet(addr)}); err != nil {
				return fmt.Errorf("give lo the address %s: %w", addr, err)
			}
		}
		return Apply(settings)
	})
}

// RunInside calls f on a thread of its own in a namespace, with netlink to it.
func RunInside(path string, f func(*netlink.Handle) error) error {
	return netns.OnNewThread(func() error {
		if err := netns.Enter(path); err != nil {
			return err
		}
		return withHandle(f)
	})
}

// MTU is the smallest of the devices that packets leave a namespace by, 0 without any.
func MTU(path string) (mtu int, err error) {
	err = RunInside(path, func(h *netlink.Handle) error {
		links, err := h.LinkList()
		if err != nil {
			return fmt.Errorf("list devices: %w", err)
		}
		for _, l := range links {
			if a := l.Attrs(); a.Index != loopback && (mtu == 0 || a.MTU < mtu) {
				mtu = a.MTU
			}
		}
		return nil
	})
	return mtu, err
}

// RemoveDevices removes all devices from a namespace that another process keeps alive.
func RemoveDevices(path string) error {
	return RunInside(path, func(handle *netlink.Handle) error {
		devices, err := handle.LinkList()
		if err != nil {
			return fmt.Errorf("list devices: %w", err)
		}
		var errs []error
		for _, d := range devices {
			if d.Attrs().Index == loopback {
				continue
			}
			if err := handle.LinkDel(d); err != nil && !errors.Is(err, unix.ENODEV) {
				errs = append(errs, fmt.Errorf("remove device %s: %w", d.Attrs().Name, err))
			}
		}
		return errors.Join(errs...)
	})
}

// withHandle calls f with netlink to the calling thread's namespace.
func withHandle(f func(*netlink.Handle) error) error {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer handle.Close()
	return f(handle)
}

// hostNet is the network of one address.
func hostNet(a netip.Addr) *net.IPNet { return ipNet(netip.PrefixFrom(a, a.BitLen())) }

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// MakeMountPoint makes the mount that namespaces are mounted below. One call then unmounts them
// all, wherever copies of it went: it is shared, as `ip netns` does.
func MakeMountPoint(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		err = Share(dir)
	}
	if err != nil {
		return fmt.Errorf("mount place of namespaces: %w", err)
	}
	return nil
}

// Share makes a directory a mount of its own that has peers where it is copied to.
func Share(dir string) error {
	err := unix.Mount(dir, dir, "", unix.MS_BIND, "")
	if err == nil {
		// Where the directory's own mount is shared, as /run is by systemd, this one belongs
		// to its peers at first, and would pass every mount below on to all of them.
		err = unix.Mount("", dir, "", unix.MS_PRIVATE, "")
	}
	if err == nil {
		err = unix.Mount("", dir, "", unix.MS_SHARED, "")
	}
	return err
}

// Unmount undoes MakePlace and Share, with all that is mounted below.
func Unmount(dir string) error {
	for {
		err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		switch {
		case err == nil: // perhaps mounted more than once
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
			return nil
		case errors.Is(err, unix.EPERM) && !Mounted(dir):
			return nil // that of a rootless lab, seen from outside its namespace
		default:
			return &os.PathError{Op: "unmount", Path: dir, Err: err}
		}
	}
}

// Mounted tells whether something is mounted at a directory. Within a user namespace
// mounts are seen by the processes in it alone.
func Mounted(dir string) bool {
	var here, above unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_BASIC_STATS, &here) != nil {
		return false
	}
	if here.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return here.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
	}
	err := unix.Statx(unix.AT_FDCWD, filepath.Dir(dir), 0, unix.STATX_BASIC_STATS, &above)
	return err != nil || here.Dev_minor != above.Dev_minor || here.Dev_major != above.Dev_major
}

// Each calls f for every node, of so many, by its name on a few threads. On each of them f may
// leave in any network namespace. The first error ends it.
func Each(ctx context.Context, nodes []string, f func(node string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	next := make(chan string)
	group.Go(func() error {
		defer close(next)
		for _, n := range nodes {
			select {
			case next <- n:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range min(runtime.NumCPU(), len(nodes)) {
		group.Go(func() error {
			return netns.OnNewThread(func() error {
				for n := range next {
					if err := f(n); err != nil {
						return fmt.Errorf("node %s: %w", n, err)
					}
				}
				return nil
			})
		})
	}
	return group.Wait()
}
