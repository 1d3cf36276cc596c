package postgres

import (
	"context"
	"fmt"
	"time"
)

// promote makes the standby that has the most WAL the primary and has the others follow
// it. Those that are down come back through rejoin. It returns nil, having done nothing,
// where no standby runs: then there is no primary until one is revived.
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

// receivedLSN is how far a standby has got the primary's WAL: once its connection to the
// primary has ended, or, where that takes long since the link between them is cut, as it is.
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

// isLater tells whether a position in the WAL ("0/3000060") is behind another.
func isLater(a, b string) bool { return position(a) > position(b) }

// position is a position in the WAL as a number, 0 when it is none.
func position(lsn string) uint64 {
	var high, low uint64
	if n, err := fmt.Sscanf(lsn, "%X/%X", &high, &low); n != 2 || err != nil {
		return 0
	}
	return high<<32 | low
}
