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
	m, release, err := c.Hold(node.Name())
	if err != nil {
		return fmt.Errorf("halting %s: %w", node.Name(), err)
	}
	defer release()
	if manner == database.Graceful && !m.Halted() {
		drain, cancel := context.WithTimeout(ctx, drainTimeout)
		defer cancel()
		if err := m.jmx.exec(drain, storageService, "drain"); err != nil && ctx.Err() == nil {
			c.Log.Warn("drain failed, stopping the member all the same", "node", node.Name(), "error", err)
		}
	}
	return m.Halt(ctx, manner)
}

// Revive implements database.Cluster: it returns when the member serves clients and it
// and all others that run see each other alive.
func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	m, release, err := c.Hold(node.Name())
	if err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	defer release()
	if m.Running() {
		return nil
	}
	if seeds := c.seedAddresses(); len(seeds) > 0 {
		m.config.seeds = seeds
	}
	if err := c.launch(ctx, m, true); err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	d := m.Server()
	if err := d.Await(ctx, c.options.start, withPacing(func(ctx context.Context) error { return c.checkAlive(ctx, m) })); err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), errors.Join(err, m.Halt(ctx, database.Abrupt)))
	}
	d.MarkMember()
	return nil
}

// checkAlive returns nil when a member serves and it and the others that run see each other.
func (c *cluster) checkAlive(ctx context.Context, m *member) error {
	if err := m.checkServing(ctx); err != nil {
		return err
	}
	running := c.Select((*member).Running)
	views, err := queryViews(ctx, running, false)
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
