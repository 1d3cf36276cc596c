package overlay

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"skerry/internal/machine/host"
)

// Path is the links from one node to another.
type Path struct {
	Links []string `json:"links"` // IDs
	// Latency is the sum of the links' one-way latencies.
	Latency time.Duration `json:"latency_ns"`
}

// String joins the links: "c+d".
func (p Path) String() string { return strings.Join(p.Links, "+") }

// Tracer follows the kernel's routes from node to node.
type Tracer struct {
	net   Environment
	hosts map[string]host.Host
	ends  map[end]hop
}

type end struct{ node, device string }

// hop is the destination of a device.
type hop struct{ link, node string }

func NewTracer(n Environment) *Tracer {
	t := &Tracer{net: n, hosts: make(map[string]host.Host), ends: make(map[end]hop)}
	for _, h := range n.Nodes {
		t.hosts[h.Name()] = h
	}
	for _, l := range n.Links {
		t.ends[end{l.A, l.Device}] = hop{l.ID, l.B}
		t.ends[end{l.B, l.Device}] = hop{l.ID, l.A}
	}
	return t
}

// Trace returns the links on the path from one node to another; ErrNoRoute if packets do not arrive.
func (t *Tracer) Trace(ctx context.Context, from, to string) ([]string, error) {
	target, err := netip.ParseAddr(t.hosts[to].Addr())
	if err != nil {
		return nil, fmt.Errorf("%s to %s: %w", from, to, err)
	}
	var links []string
	for at := from; at != to; {
		devices, err := t.net.On.LookupRoutes(ctx, at, []netip.Addr{target})
		if err == nil && devices[0] == "" {
			err = ErrNoRoute
		}
		if err != nil {
			return links, fmt.Errorf("%s to %s, at %s: %w", from, to, at, err)
		}
		next, ok := t.ends[end{at, devices[0]}]
		if !ok {
			return links, fmt.Errorf("%s to %s: device %[4]q of %[3]s is not a link: %[5]w", from, to, at, devices[0], ErrNoRoute)
		}
		if links = append(links, next.link); len(links) > len(t.hosts) {
			return links, fmt.Errorf("%s to %s: routing loop: %w", from, to, ErrNoRoute)
		}
		at = next.node
	}
	return links, nil
}

// Routed returns nil if every node's kernel has a route to every other node.
func (n Environment) Routed(ctx context.Context) error {
	var to []netip.Addr
	for _, h := range n.Nodes {
		addr, err := netip.ParseAddr(h.Addr())
		if err != nil {
			return fmt.Errorf("address of %s: %w", h.Name(), err)
		}
		to = append(to, addr)
	}
	for _, from := range n.Nodes {
		devices, err := n.On.LookupRoutes(ctx, from.Name(), to)
		if err != nil {
			return fmt.Errorf("routes of %s: %w", from.Name(), err)
		}
		for i, device := range devices {
			if device == "" {
				return fmt.Errorf("%w from %s to %s", ErrNoRoute, from.Name(), n.Nodes[i].Name())
			}
		}
	}
	return nil
}

// ShortestRTTs returns the round trip of the shortest path between every two connected nodes (Floyd and Warshall).
func ShortestRTTs(links []Link) map[string]map[string]time.Duration {
	rtts := map[string]map[string]time.Duration{}
	shorten := func(a, b string, rtt time.Duration) {
		if rtts[a] == nil {
			rtts[a] = map[string]time.Duration{a: 0}
		}
		if known, ok := rtts[a][b]; !ok || rtt < known {
			rtts[a][b] = rtt
		}
	}
	for _, l := range links {
		shorten(l.A, l.B, 2*l.Latency)
		shorten(l.B, l.A, 2*l.Latency)
	}
	for via, onward := range rtts {
		for a, row := range rtts {
			first, joined := row[via]
			if !joined {
				continue
			}
			for b, rest := range onward {
				shorten(a, b, first+rest)
			}
		}
	}
	return rtts
}
