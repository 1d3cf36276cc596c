package overlay

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/host"
)

// Path is the way from one node to another: the links it takes.
type Path struct {
	Links []string `json:"links"` // IDs
	// Latency is the sum of the links' latencies, one way.
	Latency time.Duration `json:"latency_ns"`
}

// String joins the links: "c+d".
func (p Path) String() string { return strings.Join(p.Links, "+") }

// Tracer follows the kernel's routes from node to node.
type Tracer struct {
	hosts map[string]host.Host
	ends  map[end]hop
}

// end is a device of a node.
type end struct{ node, device string }

// hop is where a device leads.
type hop struct{ link, node string }

// NewTracer returns a Tracer of a lab's nodes and links.
func NewTracer(n Net) *Tracer {
	t := &Tracer{hosts: make(map[string]host.Host), ends: make(map[end]hop)}
	for _, h := range n.Nodes {
		t.hosts[h.Name()] = h
	}
	for _, l := range n.Links {
		t.ends[end{l.A, l.Device}] = hop{l.ID, l.B}
		t.ends[end{l.B, l.Device}] = hop{l.ID, l.A}
	}
	return t
}

// Trace returns the links that packets take from a node to another; ErrNoRoute when they
// do not arrive.
func (t *Tracer) Trace(from, to string) ([]string, error) {
	target := net.ParseIP(t.hosts[to].Addr())
	var links []string
	for at := from; at != to; {
		device, err := t.device(at, target)
		if err != nil {
			return links, fmt.Errorf("%s to %s, at %s: %w", from, to, at, err)
		}
		next, ok := t.ends[end{at, device}]
		if !ok {
			return links, fmt.Errorf("%s to %s: %s sends it to the device %q, which is no link: %w", from, to, at, device, ErrNoRoute)
		}
		if links = append(links, next.link); len(links) > len(t.hosts) {
			return links, fmt.Errorf("%s to %s: the way goes round in circles: %w", from, to, ErrNoRoute)
		}
		at = next.node
	}
	return links, nil
}

// device is where a node's kernel sends packets for an address.
func (t *Tracer) device(node string, to net.IP) (name string, err error) {
	err = t.hosts[node].Do(func() error {
		handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("open netlink: %w", err)
		}
		defer handle.Close()
		routes, err := handle.RouteGet(to)
		if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) || err == nil && len(routes) == 0 {
			return ErrNoRoute
		}
		if err != nil {
			return fmt.Errorf("ask for the route to %s: %w", to, err)
		}
		device, err := handle.LinkByIndex(routes[0].LinkIndex)
		if err != nil {
			return fmt.Errorf("find device %d: %w", routes[0].LinkIndex, err)
		}
		name = device.Attrs().Name
		return nil
	})
	return name, err
}

// Routed returns nil when every node's kernel has a route to every other node.
func Routed(nodes []host.Host) error {
	for _, from := range nodes {
		err := from.Do(func() error {
			handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
			if err != nil {
				return fmt.Errorf("open netlink: %w", err)
			}
			defer handle.Close()
			for _, to := range nodes {
				routes, err := handle.RouteGet(net.ParseIP(to.Addr()))
				if err != nil || len(routes) == 0 || routes[0].Type == unix.RTN_UNREACHABLE {
					return fmt.Errorf("%w from %s to %s", ErrNoRoute, from.Name(), to.Name())
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
