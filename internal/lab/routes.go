package lab

import (
	"cmp"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/netns"
)

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
				byNode[p.from] = append(byNode[p.from], route{cmp.Or(l.Tunnel, l.Device), addr[p.to]})
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
