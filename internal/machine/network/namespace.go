// Package network configures the network of nodes in this machine's kernel: a namespace for each node with its settings,
// and the addresses, routes and states of its devices.
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

// loopback is the index of "lo".
const loopback = 1

// Make makes a node's namespace at a path, with loopback device, address (unless it is the zero value) and kernel settings.
// It leaves the calling thread, which must be a throwaway, in the namespace.
func Make(path string, addr netip.Addr, settings []KernelSetting) error {
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

// RunInside calls f with a netlink handle on a separate thread in a namespace.
func RunInside(path string, f func(*netlink.Handle) error) error {
	return netns.OnNewThread(func() error {
		if err := netns.Enter(path); err != nil {
			return err
		}
		return withHandle(f)
	})
}

// inside calls f with a netlink handle on the calling thread, which returns to its own namespace.
func inside(path string, f func(*netlink.Handle) error) error {
	return netns.Do(path, func() error { return withHandle(f) })
}

// MTU returns the smallest MTU of the namespace's devices except loopback, 0 without any.
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

// withHandle calls f with a netlink handle in the calling thread's namespace.
func withHandle(f func(*netlink.Handle) error) error {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer handle.Close()
	return f(handle)
}

func hostNet(a netip.Addr) *net.IPNet { return ipNet(netip.PrefixFrom(a, a.BitLen())) }

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// MakeMountPoint makes the mount point for namespaces. It is shared, as in `ip netns`, so that one call unmounts all
// namespaces and their copies in other mount namespaces.
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

// Share bind-mounts a directory on itself as a shared mount.
func Share(dir string) error {
	err := unix.Mount(dir, dir, "", unix.MS_BIND, "")
	if err == nil {
		// If the parent mount is shared, as /run is under systemd, the new mount starts as its peer, and would propagate
		// every mount below.
		err = unix.Mount("", dir, "", unix.MS_PRIVATE, "")
	}
	if err == nil {
		err = unix.Mount("", dir, "", unix.MS_SHARED, "")
	}
	return err
}

// Unmount reverses MakeMountPoint and Share, including all mounts below.
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

// Mounted reports whether a directory is a mount point in this process's mount namespace.
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

// Each calls f for every node on a few threads, which f may leave in any network namespace. It stops at the first error.
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
