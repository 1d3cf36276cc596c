package client

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Known is a client of a server and, behind it, of all that share its tree, of which any
// answers: where one is lost, the next is asked.
func Known(ctx context.Context, addr string) (*Client, error) {
	c := New(addr)
	s, err := c.Status(ctx)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("learning which servers share the tree: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Servers)) {
		for one := range strings.SplitSeq(s.Servers[name], ",") {
			base := baseOf(one)
			if !slices.ContainsFunc(c.replicas, func(r *replica) bool { return r.base == base }) {
				c.replicas = append(c.replicas, newReplica(base))
			}
		}
	}
	return c, nil
}

// baseOf is an address as the beginning of URLs.
func baseOf(addr string) string {
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	return strings.TrimRight(addr, "/")
}
