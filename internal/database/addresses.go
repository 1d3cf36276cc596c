package database

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"skerry/internal/machine/host"
)

// Published is a database whose members can be reached under another address than they listen on
// (host.Published): in containers with published ports, or behind a balancer. It binds to
// host.Listen, names members by PeerAddr, and gives clients Env.Contact if that is set.
type Published interface {
	// Ports returns the ports that members of a cluster of that many nodes listen on.
	Ports(nodes int, options Options) (Ports, error)
}

// Ports of a database's members.
type Ports struct {
	// All lists the ports that clients, other members and tools connect to, the clients' first.
	All []int
	// Fixed means that members announce their own port numbers, which must be published unchanged.
	Fixed bool
}

// PeerAddr returns the "address:port" under which others reach a server that listens on a host's port.
func PeerAddr(h host.Host, port int) string {
	return net.JoinHostPort(h.Addr(), strconv.Itoa(host.Port(h, port)))
}

// LocalAddr returns the address of a server on a port of a host for callers on that host.
func LocalAddr(h host.Host, port int) string {
	return net.JoinHostPort(host.Listen(h), strconv.Itoa(port))
}

// Contacts returns the client addresses: those of the service in front of all members, else the members'.
func (e Env) Contacts(port int, members []string) []string {
	if e.Contact != nil {
		if all := e.Contact(port); len(all) > 0 {
			return all
		}
	}
	return members
}

// OrderFirst returns the nodes with the named one first, if any. Option names the option in the error.
func OrderFirst(nodes []host.Host, option, name string) ([]host.Host, error) {
	if name == "" {
		return nodes, nil
	}
	if i := slices.IndexFunc(nodes, func(h host.Host) bool { return h.Name() == name }); i >= 0 {
		return slices.Concat(nodes[i:i+1], nodes[:i], nodes[i+1:]), nil
	}
	var names []string
	for _, h := range nodes {
		names = append(names, h.Name())
	}
	return nil, fmt.Errorf("%s: no data node is called %q; they are %s", option, name, strings.Join(names, ", "))
}

const (
	// probeTimeout bounds the measurement of one address.
	probeTimeout = 3 * time.Second
	// probes is the number of connections per address. The shortest one counts.
	probes = 5
)

// DialFunc connects, as net.Dialer.DialContext does.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// SortByDistance sorts host:port addresses by the shortest connection time, unreachable ones last. A nil dial
// means the system's.
func SortByDistance(ctx context.Context, dial DialFunc, addrs []string) []string {
	if len(addrs) == 1 {
		return addrs
	}
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	type probed struct {
		addr string
		took time.Duration
	}
	all := make([]probed, len(addrs))
	var probing sync.WaitGroup
	for i, addr := range addrs {
		all[i] = probed{addr, 2 * probeTimeout}
		probing.Go(func() {
			for range probes {
				began := time.Now()
				conn, err := dial(ctx, "tcp", addr)
				if err != nil {
					return
				}
				all[i].took = min(all[i].took, time.Since(began))
				_ = conn.Close() // nothing was sent on it
			}
		})
	}
	probing.Wait()
	slices.SortStableFunc(all, func(a, b probed) int { return cmp.Compare(a.took, b.took) })
	sorted := make([]string, len(all))
	for i, p := range all {
		sorted[i] = p.addr
	}
	return sorted
}
