package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

const (
	// changeTimeout bounds a change of membership: a clone is copied over slow links.
	changeTimeout = 10 * time.Minute
	// rejoinTimeout is what a member that was down gets to stream again before it is
	// cloned anew.
	rejoinTimeout = 30 * time.Second
)

// Join implements database.Cluster:
//
//	slot            accepted: the primary keeps WAL for the new standby
//	pg_basebackup   the primary's data is copied
//	start           complete: the primary says that it streams and has replayed all that
//	                there was when it began to
func (c *cluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	var primary *member
	m := newMember(node, c.options)
	accepted := false
	return c.RunJoin(ctx, node, daemon.JoinSteps{
		Timeout: changeTimeout,
		Check: func(context.Context) error {
			if primary = c.primary.Load(); primary == nil {
				return fmt.Errorf("%w: there is no primary", database.ErrNotReady)
			}
			return nil
		},
		Join: func(ctx context.Context, timer *daemon.ChangeTimer) error {
			if err := c.createSlot(ctx, primary, m); err != nil {
				return err
			}
			timer.Accept()
			accepted = true
			if err := c.admitClone(ctx, m, primary); err != nil {
				return err
			}
			c.Add(m)
			return nil
		},
		Undo: func(ctx context.Context) error {
			if !accepted {
				return nil
			}
			ctx, cancel := context.WithTimeout(ctx, adminTimeout)
			defer cancel()
			return errors.Join(m.Kill(), c.dropSlot(ctx, primary, m), m.discard(ctx))
		},
	})
}

// admitClone copies the primary's data to a new standby and admits it.
func (c *cluster) admitClone(ctx context.Context, m, primary *member) error {
	if err := c.clone(ctx, m, primary); err != nil {
		return err
	}
	return c.admit(ctx, m, primary, changeTimeout)
}

// admit starts a standby and waits until it has caught up.
func (c *cluster) admit(ctx context.Context, m, primary *member, timeout time.Duration) error {
	if err := c.run(ctx, m, true); err != nil {
		return err
	}
	if err := c.awaitStreaming(ctx, m, primary, timeout); err != nil {
		return err
	}
	// Slots from when it was primary itself would keep WAL for nobody.
	if _, err := m.query(ctx, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active"); err != nil {
		return err
	}
	m.Server().MarkMember()
	return nil
}

// Leave implements database.Cluster. A standby:
//
//	stop            fast shutdown, or SIGKILL
//	slot dropped    accepted and complete: the primary keeps nothing for it any more
//
// The primary:
//
//	stop            fast shutdown, after the standbys have everything; or SIGKILL
//	pg_promote      accepted: the most advanced standby takes writes
//	  wait          complete: the other standbys stream from it
func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (database.Change, error) {
	return c.RunLeave(ctx, node, daemon.LeaveSteps[*member]{
		Timeout: changeTimeout,
		Check:   func(_ context.Context, m *member) error { return c.checkLeave(m) },
		Leave: func(ctx context.Context, m *member, timer *daemon.ChangeTimer) error {
			if err := c.halt(ctx, m, manner); err != nil {
				return err
			}
			c.Drop(m)
			if primary := c.primary.Load(); primary != nil {
				if err := c.dropSlot(ctx, primary, m); err != nil {
					return err
				}
			}
			timer.Accept()
			if err := c.Servers.Await(ctx, c.checkSettled); err != nil {
				return err
			}
			timer.Complete()
			return m.discard(ctx)
		},
	})
}

// checkLeave refuses the leave of the last member that could be primary.
func (c *cluster) checkLeave(m *member) error {
	members, primary := c.current()
	for _, o := range members {
		if o != m && !o.Halted() && (primary != nil || m.Halted()) {
			return nil
		}
	}
	return fmt.Errorf("%w: no other member runs that could be primary", database.ErrFixed)
}

// checkSettled returns nil when all members that run are primary or stream.
func (c *cluster) checkSettled(ctx context.Context) error {
	members, primary := c.current()
	if primary == nil {
		return fmt.Errorf("%w: there is no primary", database.ErrNotReady)
	}
	states, err := standbys(ctx, primary)
	if err != nil {
		return err
	}
	for _, m := range members {
		if s := states[m.host.Name()]; m != primary && !m.Halted() && s != streaming {
			return fmt.Errorf("%w: the standby on %s is not streaming (%q)", database.ErrNotReady, m.host.Name(), s)
		}
	}
	return nil
}
