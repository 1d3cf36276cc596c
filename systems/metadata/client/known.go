package client

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Discover is a client of a server and, behind it, of all that share its tree, of which any
// answers: where one is lost, the next is asked.
func Discover(ctx context.Context, addr string, with ...Option) (*Client, error) {
	c := New(addr, with...)
	s, err := c.Status(ctx)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("learning which servers share the tree: %w", err)
	}
	all := c.currentReplicas()
	for _, name := range slices.Sorted(maps.Keys(s.Servers)) {
		for one := range strings.SplitSeq(s.Servers[name], ",") {
			base := c.baseURL(one)
			if !slices.ContainsFunc(all, func(r *replica) bool { return r.base == base }) {
				all = append(all, newReplica(base))
			}
		}
	}
	c.replicas.Store(&all)
	return c, nil
}

// baseURL is an address as the beginning of URLs.
func (c *Client) baseURL(addr string) string {
	if !strings.Contains(addr, "://") {
		addr = c.scheme + addr
	}
	return strings.TrimRight(addr, "/")
}
