package postgres

import (
	"context"
	"fmt"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

// Halt implements database.Cluster. When it is the primary that halts, the standby with
// the most WAL is promoted, at once: there is no failover manager that would have to
// notice first.
func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	m, release, err := c.Hold(node.Name())
	if err != nil {
		return fmt.Errorf("halting %s: %w", node.Name(), err)
	}
	defer release()
	if err := c.halt(ctx, m, manner); err != nil {
		return fmt.Errorf("halting %s: %w", node.Name(), err)
	}
	return nil
}

func (c *cluster) halt(ctx context.Context, m *member, manner database.Manner) error {
	if !m.MarkHalted() {
		return nil
	}
	end := m.stop
	if manner == database.Abrupt {
		end = func(context.Context) error { return m.Kill() }
	}
	if err := end(ctx); err != nil {
		return err
	}
	if primary := c.primary.Load(); primary == m {
		return c.promote(ctx)
	}
	return nil
}

// Revive implements database.Cluster. A member comes back as a standby of whoever is
// primary; with none, as the primary, if it was the last one.
func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	m, release, err := c.Hold(node.Name())
	if err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	defer release()
	if m.Server().Running() {
		return nil
	}
	if err := c.revive(ctx, m); err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	return nil
}

func (c *cluster) revive(ctx context.Context, m *member) error {
	ctx, cancel := context.WithTimeoutCause(ctx, changeTimeout, fmt.Errorf("not done after %v", changeTimeout))
	defer cancel()
	primary := c.primary.Load()
	if primary != nil && primary != m {
		return c.rejoin(ctx, m, primary)
	}
	return c.resumePrimary(ctx, m)
}

// resumePrimary starts a member where there is no primary, and makes it that. One that was a
// standby is promoted: which of those that are down has the most WAL nobody can ask.
func (c *cluster) resumePrimary(ctx context.Context, m *member) error {
	if err := c.run(ctx, m, false); err != nil {
		return err
	}
	text, err := m.query(ctx, inRecovery)
	if err != nil {
		return err
	}
	c.primary.Store(m)
	if text[0][0] != isTrue {
		return nil
	}
	c.primary.Store(nil)
	return c.promote(ctx)
}
