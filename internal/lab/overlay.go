package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/host"
	"skerry/internal/netns"
	"skerry/internal/overlay"
	"skerry/internal/procfs"
	"skerry/internal/topology"
	"skerry/internal/tunnel"
)

// Networks of addresses, two for each link: linkNet those of the links' devices, 10.80.0.0
// to 10.95.255.255, and tunnelNet those of the tunnels', 10.96.0.0 to 10.111.255.255.
const (
	linkNet   = 10<<24 | 80<<16
	tunnelNet = 10<<24 | 96<<16
)

// endAddresses are those of the two ends of the i-th link.
func endAddresses(net uint32, i int) (a, b netip.Addr) {
	n := net + 2*uint32(i)
	at := func(n uint32) netip.Addr {
		return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	}
	return at(n), at(n + 1)
}

// overlayNet is the lab as its overlay sees it: tunnels in place of links that have one.
func (l *Lab) overlayNet() overlay.Net {
	n := overlay.Net{Nodes: l.Hosts(), Log: l.log}
	for i, k := range l.links.Links {
		device := k.Device
		a, b := endAddresses(linkNet, i)
		if k.Tunnel != "" {
			device = k.Tunnel
			a, b = endAddresses(tunnelNet, i)
		}
		n.Links = append(n.Links, overlay.Link{ID: k.ID, A: k.A, B: k.B, Device: device, Latency: k.AB.Latency, AddrA: a, AddrB: b})
	}
	return n
}

// numbered tells whether the devices of links have addresses of their own: where nodes
// pass packets on, or a pair has several links, a node's address does not say which link.
func numbered(c Config) bool {
	pairs := make(map[[2]string]bool)
	for _, l := range c.Topology.Links {
		pair := [2]string{min(l.A, l.B), max(l.A, l.B)}
		if pairs[pair] {
			return true
		}
		pairs[pair] = true
	}
	return c.Overlay != nil || c.Topology.Encryption == topology.WireGuard
}

// number gives the devices of links their addresses and lays the tunnels.
func (l *Lab) number(ctx context.Context, c Config) error {
	each := func(what string, f func(*netlink.Handle, nodeState) error) error {
		return onNodes(ctx, l.state.Nodes, count(c.Progress, what, len(l.state.Nodes)), func(n nodeState) error {
			if err := netns.Enter(n.Netns); err != nil {
				return err
			}
			handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
			if err != nil {
				return fmt.Errorf("open netlink: %w", err)
			}
			defer handle.Close()
			return f(handle, n)
		})
	}
	net := l.overlayNet()
	encrypted := c.Topology.Encryption == topology.WireGuard
	if encrypted {
		err := each("addresses", func(h *netlink.Handle, n nodeState) error { return l.addUnderlay(h, n) })
		if err == nil {
			err = l.layTunnels(ctx, c)
		}
		if err != nil {
			return err
		}
	}
	return each("addresses", func(h *netlink.Handle, n nodeState) error { return addOverlay(h, n, net, encrypted) })
}

// addUnderlay gives the devices under the tunnels of a node their addresses.
func (l *Lab) addUnderlay(h *netlink.Handle, n nodeState) error {
	for i, k := range l.links.Links {
		own, b := endAddresses(linkNet, i)
		switch n.Name {
		case k.A:
		case k.B:
			own = b
		default:
			continue
		}
		if err := addAddresses(h, k.Device, address4(own, 31)); err != nil {
			return err
		}
	}
	return nil
}

// addOverlay gives the devices that packets of a node leave by their addresses: the
// node's own first, which packets leave with, and then one that says which link it is.
func addOverlay(h *netlink.Handle, n nodeState, net overlay.Net, tunnels bool) error {
	node, err := netip.ParseAddr(n.Addr)
	if err != nil {
		return fmt.Errorf("address of %s: %w", n.Name, err)
	}
	for _, l := range net.Links {
		own := l.AddrA
		if l.B == n.Name {
			own = l.AddrB
		} else if l.A != n.Name {
			continue
		}
		if err := addAddresses(h, l.Device, address4(node, 32), address4(own, 31)); err != nil {
			return err
		}
		if !tunnels {
			continue
		}
		device, err := h.LinkByName(l.Device)
		if err == nil {
			err = errors.Join(h.LinkSetMTU(device, tunnel.MTU), h.LinkSetUp(device))
		}
		if err == nil {
			err = linkLocal(h, device, n.Addr)
		}
		if err != nil {
			return fmt.Errorf("set %s up: %w", l.Device, err)
		}
	}
	return nil
}

func addAddresses(h *netlink.Handle, device string, addresses ...*netlink.Addr) error {
	d, err := h.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find %s: %w", device, err)
	}
	for _, a := range addresses {
		if err := h.AddrAdd(d, a); err != nil {
			return fmt.Errorf("give %s the address %s: %w", device, a, err)
		}
	}
	return nil
}

func address4(addr netip.Addr, bits int) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(bits, 32)}}
}

// layTunnels lays a tunnel over every link.
func (l *Lab) layTunnels(ctx context.Context, c Config) (err error) {
	specs := make([]tunnel.Spec, len(l.links.Links))
	path := make(map[string]string, len(l.state.Nodes))
	for _, n := range l.state.Nodes {
		path[n.Name] = n.Netns
	}
	for i, k := range l.links.Links {
		a, b := endAddresses(linkNet, i)
		specs[i] = tunnel.Spec{
			A: tunnel.End{Netns: path[k.A], Device: k.Tunnel, Addr: a},
			B: tunnel.End{Netns: path[k.B], Device: k.Tunnel, Addr: b},
		}
	}
	l.tunnels, err = tunnel.Start(ctx, specs, tunnel.Options{
		Command: []string{c.Exe, "agent", "wireguard"},
		LogFile: l.place.file(tunnelLogFile),
		Env:     []string{host.LabVariable + "=" + l.state.ID}, ExitWithOwner: c.Ephemeral,
		Began: func(pid int) error {
			p, err := procfs.Of(pid)
			if err != nil {
				return err
			}
			return l.journal.began(p, tunneller)
		},
	})
	return err
}

// tunneller names the process that moves packets through tunnels.
const tunneller = "@wireguard"

// TunnelPID is the process that encrypts what goes over the links, 0 where nothing does, or
// the kernel, or a process that another command started.
func (l *Lab) TunnelPID() int {
	if l.tunnels == nil {
		return 0
	}
	return l.tunnels.PID()
}

// End is a node at one end of a link, to measure the link from.
type End struct {
	*host.Node
	addr string
}

// Addr is the address that the other end reaches this one by over that link.
func (e *End) Addr() string { return e.addr }

// Ends are the two ends of a link; ErrNoLink when there is none of that name.
func (l *Lab) Ends(id string) (a, b *End, err error) { return l.ends(id, linkNet) }

// TunnelEnds are the two ends of the tunnel over a link; ErrNoLink when there is none.
func (l *Lab) TunnelEnds(id string) (a, b *End, err error) {
	if l.state.Topology.Encryption != topology.WireGuard {
		return nil, nil, fmt.Errorf("%w: the links of lab %s have no tunnels", ErrNoLink, l.state.Name)
	}
	return l.ends(id, tunnelNet)
}

func (l *Lab) ends(id string, network uint32) (a, b *End, err error) {
	for i, k := range l.Links() {
		if k.ID != id {
			continue
		}
		a, b = &End{Node: l.byName[k.A]}, &End{Node: l.byName[k.B]}
		a.addr, b.addr = a.Node.Addr(), b.Node.Addr()
		if l.state.Numbered {
			x, y := endAddresses(network, i)
			a.addr, b.addr = x.String(), y.String()
		}
		return a, b, nil
	}
	return nil, nil, fmt.Errorf("%w in lab %s: %s", ErrNoLink, l.state.Name, id)
}

// startOverlay starts the daemons that route.
func (l *Lab) startOverlay(ctx context.Context, c Config) (err error) {
	if c.Overlay == nil {
		return nil
	}
	c.Progress("routes", 0, len(l.nodes))
	l.overlay, err = c.Overlay.Start(ctx, l.overlayNet())
	return err
}

// Trace returns the links that packets take from one node to another at this moment, with
// the latency that they add up to.
func (l *Lab) Trace(from, to string) (overlay.Path, error) {
	for _, name := range []string{from, to} {
		if _, err := l.Node(name); err != nil {
			return overlay.Path{}, err
		}
	}
	ids, err := overlay.NewTracer(l.overlayNet()).Trace(from, to)
	if err != nil {
		return overlay.Path{}, err
	}
	p := overlay.Path{Links: ids}
	at := from
	for _, id := range ids {
		for _, k := range l.Links() {
			switch {
			case k.ID == id && k.A == at:
				p.Latency, at = p.Latency+k.AB.Latency, k.B
			case k.ID == id && k.B == at:
				p.Latency, at = p.Latency+k.BA.Latency, k.A
			default:
				continue
			}
			break
		}
	}
	return p, nil
}

const (
	// quietRoutes is how long no way must have changed for routes to count as settled,
	// settleTimeout bounds the wait: with links that come and go they never are.
	quietRoutes   = 1500 * time.Millisecond
	settleTimeout = 15 * time.Second
	settlePoll    = 250 * time.Millisecond
)

// Settle waits until the routes between nodes have not changed for a while. It looks at
// the kernel's; what tinc does inside itself is not seen.
func (l *Lab) Settle(ctx context.Context) error {
	if !l.state.Topology.Overlay.Routed() {
		return nil
	}
	tracer := overlay.NewTracer(l.overlayNet())
	began := time.Now()
	last, changed := "", began
	for time.Since(began) < settleTimeout {
		var ways strings.Builder
		for _, a := range l.nodes {
			for _, b := range l.nodes {
				ids, err := tracer.Trace(a.Name(), b.Name())
				if err != nil && !errors.Is(err, overlay.ErrNoRoute) {
					return err
				}
				fmt.Fprintln(&ways, ids)
			}
		}
		if ways.String() != last {
			last, changed = ways.String(), time.Now()
		}
		if time.Since(changed) >= quietRoutes {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(settlePoll):
		}
	}
	return nil
}

// OverlayRestarts is how many routing daemons ended by themselves and were started again
// by this process.
func (l *Lab) OverlayRestarts() int {
	if l.overlay == nil {
		return 0
	}
	return l.overlay.Restarts()
}

// closeOverlay stops looking after the daemons, which end with their nodes.
func (l *Lab) closeOverlay() error {
	if l.overlay == nil {
		return nil
	}
	running := l.overlay
	l.overlay = nil
	return running.Close()
}
