package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry/internal/netns"
)

// loopback is the index of "lo" in every namespace.
const loopback = 1

// onNodes calls f for every node on a few threads, each of which f may leave in any
// network namespace. The first error ends it.
func onNodes(ctx context.Context, nodes []nodeState, done func(), f func(nodeState) error) error {
	group, ctx := errgroup.WithContext(ctx)
	next := make(chan nodeState)
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
			return netns.Throwaway(func() error {
				for n := range next {
					if err := f(n); err != nil {
						return fmt.Errorf("node %s: %w", n.Name, err)
					}
					done()
				}
				return nil
			})
		})
	}
	return group.Wait()
}

// makeNamespace makes a node's namespace: its loopback device, its address and its
// kernel settings. The calling thread is in it then.
func makeNamespace(n nodeState, settings []setting) error {
	if err := netns.Make(n.Netns); err != nil {
		return err
	}
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer handle.Close()
	lo := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: "lo", Index: loopback}}
	if err := handle.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	if err := handle.AddrAdd(lo, &netlink.Addr{IPNet: hostNet(net.ParseIP(n.Addr))}); err != nil {
		return fmt.Errorf("give lo the address %s: %w", n.Addr, err)
	}
	return applySettings(settings)
}

// removeDevices removes all devices from a namespace that somebody keeps from ending.
func removeDevices(path string) error {
	return netns.Throwaway(func() error {
		if err := netns.Enter(path); err != nil {
			return err
		}
		handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("open netlink: %w", err)
		}
		defer handle.Close()
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
