package mongodb

import (
	"context"
	"fmt"
	"slices"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

func (c *cluster) joinShard(ctx context.Context, node host.Host, accepted func()) error {
	port := c.options.port + shardOffset
	set := c.shardNameAt(database.PeerAddr(node, port))
	s, err := c.addServer(node, process{role: roleShard, set: set, port: port})
	if err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if err := c.launch(ctx, s, true); err != nil {
		return err
	}
	if err := c.formSet(ctx, set); err != nil {
		return err
	}
	router, err := c.findRouter()
	if err != nil {
		return err
	}
	if err := addShard(ctx, router.admin, set, []string{s.addr}); err != nil {
		return err
	}
	accepted()
	if len(c.options.mongos) == 0 {
		r, err := c.addServer(node, process{role: roleRouter, port: c.options.port})
		if err != nil {
			return err
		}
		if err := r.prepare(ctx); err != nil {
			return err
		}
		if err := c.launch(ctx, r, true); err != nil {
			return err
		}
	}
	return s.Server().Await(ctx, changeTimeout, func(ctx context.Context) error { return checkBalanced(ctx, router.admin) })
}

func (c *cluster) checkShardLeave(servers []*server, manner database.Manner) error {
	for _, s := range servers {
		if s.role == roleConfig {
			return fmt.Errorf("%w: the node runs a config server", database.ErrFixed)
		}
	}
	switch {
	case c.options.replicas > 1:
		return fmt.Errorf("%w: the node has a member of a shard's replica set", database.ErrFixed)
	case manner == database.Abrupt:
		return fmt.Errorf("%w: %s", database.ErrUnsupported, loneShard)
	case len(c.Select(func(s *server) bool { return s.role == roleShard })) == 1:
		return fmt.Errorf("%w: it is the last shard", database.ErrFixed)
	}
	return nil
}

func (c *cluster) drainShard(ctx context.Context, servers []*server, accepted func()) error {
	for _, s := range servers {
		if s.role != roleShard {
			continue
		}
		router, err := c.routerBeside(servers)
		if err != nil {
			return err
		}
		if err := c.Servers.Await(ctx, func(ctx context.Context) error {
			r, err := removeShard(ctx, router.admin, s.set)
			if err != nil {
				return err
			}
			accepted()
			return c.checkDrained(ctx, router, s.set, r)
		}); err != nil {
			return err
		}
		for _, o := range servers {
			if d := o.Server(); d != nil {
				d.MarkLeaving()
			}
		}
	}
	return nil
}

// checkDrained returns nil if a shard is removed. It moves databases that the balancer does not move.
func (c *cluster) checkDrained(ctx context.Context, router *server, set string, r removal) error {
	if r.State == completed {
		return nil
	}
	if r.State == ongoing && r.Remaining.Chunks == 0 {
		for _, name := range r.ToMove {
			to := slices.DeleteFunc(c.setNames(), func(s string) bool { return s == set || s == configName })[0]
			if err := movePrimary(ctx, router.admin, name, to); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%w: %s has %d chunks left", database.ErrNotReady, set, r.Remaining.Chunks)
}

func (c *cluster) routerBeside(servers []*server) (*server, error) {
	for _, s := range c.Select(func(s *server) bool { return s.role == roleRouter && !slices.Contains(servers, s) }) {
		if s.Running() {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w: no other mongos runs", database.ErrNotReady)
}
