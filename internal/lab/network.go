package lab

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry/internal/netns"
)

// loopback is the index of "lo" in every namespace.
const loopback = 1

// perNet is how many addresses of 10.77.x.0/24 are used: some software takes .0 and .255
// for something else.
const (
	perNet   = 254
	maxNodes = perNet * 256
)

// address is the IPv4 address of the i-th node.
func address(i int) net.IP {
	return net.IPv4(10, 77, byte(i/perNet), byte(i%perNet+1)).To4()
}

// deviceName names the device of the i-th link, the same at both ends. It is unique in
// the lab, since engines may keep the other half of it in a namespace of their own.
func deviceName(i int) string { return fmt.Sprintf("lk%d", i) }

// seedOf gives each link its own sequence of random choices.
func seedOf(seed uint64, id string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", seed, id)
	return h.Sum64()
}

// hosts is the text of /etc/hosts on the nodes.
func hosts(nodes []nodeState) []byte {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")
	for _, n := range nodes {
		fmt.Fprintf(&b, "%s %s\n", n.Addr, n.Name)
	}
	return []byte(b.String())
}

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
func makeNamespace(n nodeState) error {
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
	return applySettings()
}

func hostNet(ip net.IP) *net.IPNet { return &net.IPNet{IP: ip, Mask: net.CIDRMask(32, 32)} }

// route is the way from one node to a neighbour.
type route struct {
	device string
	to     net.IP
}

// routes are every node's, by its name: to each neighbour over the first link of the pair.
func routes(nodes []nodeState, links []Link) map[string][]route {
	addr := make(map[string]net.IP, len(nodes))
	for _, n := range nodes {
		addr[n.Name] = net.ParseIP(n.Addr)
	}
	type pair struct{ from, to string }
	seen := map[pair]bool{}
	byNode := make(map[string][]route, len(nodes))
	for _, l := range links {
		for _, p := range []pair{{l.A, l.B}, {l.B, l.A}} {
			if !seen[p] {
				seen[p] = true
				byNode[p.from] = append(byNode[p.from], route{l.Device, addr[p.to]})
			}
		}
	}
	return byNode
}

// addRoutes gives a node its routes. The calling thread is in its namespace then.
func addRoutes(n nodeState, routes []route) error {
	if len(routes) == 0 {
		return nil
	}
	if err := netns.Enter(n.Netns); err != nil {
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
	index := make(map[string]int, len(devices))
	for _, d := range devices {
		index[d.Attrs().Name] = d.Attrs().Index
	}
	for _, r := range routes {
		err := handle.RouteAdd(&netlink.Route{
			LinkIndex: index[r.device], Dst: hostNet(r.to), Src: net.ParseIP(n.Addr), Scope: netlink.SCOPE_LINK,
		})
		if err != nil {
			return fmt.Errorf("add route to %s over %s: %w", r.to, r.device, err)
		}
	}
	return nil
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

// shownDir is where `ip netns` looks for namespaces.
const shownDir = "/run/netns"

// show makes nodes' namespaces known to `ip netns` under names that it returns by node;
// none where that is not permitted.
func show(lab, id string, nodes []nodeState) (map[string]string, error) {
	if err := os.Mkdir(shownDir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, nil
	}
	shown := make(map[string]string, len(nodes))
	for _, n := range nodes {
		name := "skerry-" + lab + "-" + n.Name
		err := os.Symlink(n.Netns, filepath.Join(shownDir, name))
		if errors.Is(err, fs.ErrExist) { // a lab of this name in another state directory
			name = "skerry-" + id + "-" + n.Name
			err = os.Symlink(n.Netns, filepath.Join(shownDir, name))
		}
		if errors.Is(err, fs.ErrPermission) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("show namespace: %w", err)
		}
		shown[n.Name] = name
	}
	return shown, nil
}

// hide removes the names that lead below dir, and shownDir itself when made says that
// a lab made it and it is empty.
func hide(dir string, made bool) error {
	entries, err := os.ReadDir(shownDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list shown namespaces: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if e.Type() != fs.ModeSymlink || !strings.HasPrefix(e.Name(), "skerry-") {
			continue
		}
		name := filepath.Join(shownDir, e.Name())
		target, err := os.Readlink(name)
		if err != nil || !strings.HasPrefix(target, dir+"/") {
			continue
		}
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("hide namespace: %w", err))
		}
	}
	if made {
		_ = os.Remove(shownDir) // others may use it
	}
	return errors.Join(errs...)
}

// ownsShownDir tells whether shownDir is, or is going to be, there for labs alone.
func ownsShownDir() bool {
	entries, err := os.ReadDir(shownDir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	for _, e := range entries {
		if e.Type() != fs.ModeSymlink || !strings.HasPrefix(e.Name(), "skerry-") {
			return false
		}
	}
	return len(entries) > 0
}
