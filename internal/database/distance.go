package database

import (
	"cmp"
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

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
