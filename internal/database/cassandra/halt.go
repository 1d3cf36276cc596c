package cassandra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

// drainTimeout bounds a drain: a member that cannot flush its memory is stopped all the same.
const drainTimeout = time.Minute

// Halt implements database.Cluster. Graceful is nodetool's drain (no more clients,
// memory to disk) and SIGTERM.
func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	m, err := c.lockMember(node)
	if err != nil {
		return fmt.Errorf("halting %s: %w", node.Name(), err)
	}
	defer c.changing.End()
	d := m.daemon.Load()
	if d == nil {
		return nil
	}
	if manner == database.Abrupt {
		err = d.Kill()
	} else {
		drain, cancel := context.WithTimeout(ctx, drainTimeout)
		defer cancel()
		if err := m.jmx.exec(drain, storageService, "drain"); err != nil && ctx.Err() == nil {
			c.log.Warn("drain failed, stopping the member all the same", "node", node.Name(), "error", err)
		}
		err = d.Stop(ctx)
	}
	if err != nil {
		return err
	}
	m.daemon.Store(nil)
	return nil
}

// Revive implements database.Cluster: it returns when the member serves clients and it
// and all others that run see each other alive.
func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	m, err := c.lockMember(node)
	if err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	defer c.changing.End()
	if m.running() {
		return nil
	}
	if seeds := c.seeds(); len(seeds) > 0 {
		m.config.seeds = seeds
	}
	if err := c.launch(ctx, m, true); err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	d := m.daemon.Load()
	if err := d.Await(ctx, c.options.start, paced(func(ctx context.Context) error { return c.alive(ctx, m) })); err != nil {
		m.daemon.Store(nil)
		return fmt.Errorf("reviving %s: %w", node.Name(), errors.Join(err, d.Kill()))
	}
	d.Staying()
	return nil
}

// lockMember finds a member and keeps the cluster from changing; the caller unlocks.
func (c *cluster) lockMember(node host.Host) (*member, error) {
	if err := c.changing.Begin(); err != nil {
		return nil, err
	}
	if m := c.member(node); m != nil {
		return m, nil
	}
	c.changing.End()
	return nil, database.ErrNotMember
}

// alive returns nil when a member serves and it and the others that run see each other.
func (c *cluster) alive(ctx context.Context, m *member) error {
	if err := m.serving(ctx); err != nil {
		return err
	}
	running := slices.DeleteFunc(c.current(), func(o *member) bool { return !o.running() })
	views, err := lookAll(ctx, running, false)
	if err != nil {
		return err
	}
	for _, v := range views {
		for _, o := range running {
			if (v.member == m || o == m) && !slices.Contains(v.Live, o.host.Addr()) {
				return fmt.Errorf("%w: %s says that %s is down", database.ErrNotReady, v.member.host.Name(), o.host.Name())
			}
		}
	}
	return nil
}
