package postgres

import (
	"context"
	"fmt"
	"time"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

// Halt implements database.Cluster. If the primary halts, the standby with the most WAL is promoted at once.
func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	return c.RunHalt(ctx, node, func(ctx context.Context, m *member) error { return c.halt(ctx, m, manner) })
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

// Revive implements database.Cluster. A member returns as a standby, or as primary if there is none and it was last.
func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	return c.RunRevive(ctx, node, c.revive)
}

func (c *cluster) revive(ctx context.Context, m *member) error {
	if m.Server().Running() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, changeTimeout, fmt.Errorf("not done after %v", changeTimeout))
	defer cancel()
	if primary := c.primary.Load(); primary != nil && primary != m {
		return c.rejoin(ctx, m, primary)
	}
	return c.resumePrimary(ctx, m)
}

// resumePrimary makes a member primary if there is none, without a comparison of WAL: all others are down.
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

// promote makes the standby with the most WAL the primary, and the others follow it. Without a running standby
// it does nothing.
func (c *cluster) promote(ctx context.Context) error {
	members, old := c.current()
	var best *member
	var most string
	for _, m := range members {
		if m == old || m.Halted() {
			continue
		}
		got, err := receivedLSN(ctx, m)
		if err != nil {
			return err
		}
		if best == nil || isLater(got, most) {
			best, most = m, got
		}
	}
	c.primary.Store(best)
	if best == nil {
		return nil
	}
	c.ReportProgress("promoting %s", best.host.Name())
	// The checkpoint puts the new timeline into the control file, where pg_rewind looks.
	if _, err := best.query(ctx, fmt.Sprintf("SELECT pg_promote(true, %d); CHECKPOINT", int(adminTimeout/time.Second))); err != nil {
		return fmt.Errorf("promoting %s: %w", best.host.Name(), err)
	}
	for _, m := range members {
		switch {
		case m == best:
			continue
		case m == old || m.Halted():
			m.stale.Store(true)
			continue
		}
		if err := c.createSlot(ctx, best, m); err != nil {
			return err
		}
		if err := c.followPrimary(ctx, m, best); err != nil {
			return err
		}
	}
	return nil
}

// receivedLSN returns a standby's received WAL once its connection to the primary has ended, or after a timeout.
func receivedLSN(ctx context.Context, m *member) (string, error) {
	var lsn string
	err := m.Server().Await(ctx, connTimeout, func(ctx context.Context) error {
		text, err := m.query(ctx, "SELECT GREATEST(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), "+
			"(SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming')")
		if err != nil {
			return err
		}
		lsn = text[0][0]
		if text[0][1] != "0" {
			return fmt.Errorf("postgres on %s still receives from the primary", m.host.Name())
		}
		return nil
	})
	if lsn != "" && ctx.Err() == nil {
		return lsn, nil
	}
	return lsn, err
}

// isLater reports whether a WAL position ("0/3000060") is behind another.
func isLater(a, b string) bool { return position(a) > position(b) }

// position returns a WAL position as a number, 0 if it is invalid.
func position(lsn string) uint64 {
	var high, low uint64
	if n, err := fmt.Sscanf(lsn, "%X/%X", &high, &low); n != 2 || err != nil {
		return 0
	}
	return high<<32 | low
}
