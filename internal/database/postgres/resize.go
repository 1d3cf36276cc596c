package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/database"
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
func (c *cluster) Join(ctx context.Context, node host.Host) (change database.Change, err error) {
	release, err := c.Vacant(node.Name())
	if err != nil {
		return change, fmt.Errorf("joining %s: %w", node.Name(), err)
	}
	defer release()
	primary := c.primary.Load()
	if primary == nil {
		return change, fmt.Errorf("joining %s: %w: there is no primary", node.Name(), database.ErrNotReady)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, changeTimeout, fmt.Errorf("not done after %v", changeTimeout))
	defer cancel()
	c.ReportProgress("%s is joining", node.Name())
	began := time.Now()
	m := newMember(node, c.options)
	if err := c.reserve(ctx, primary, m); err != nil {
		return change, fmt.Errorf("joining %s: %w", node.Name(), err)
	}
	change.Accepted = time.Since(began)
	if err := c.takeIn(ctx, m, primary); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), adminTimeout)
		defer cancel()
		return change, errors.Join(fmt.Errorf("joining %s: %w", node.Name(), err), m.Kill(), c.release(ctx, primary, m), m.discard(ctx))
	}
	c.Add(m)
	change.Complete = time.Since(began)
	return change, nil
}

// takeIn makes a node a standby.
func (c *cluster) takeIn(ctx context.Context, m, primary *member) error {
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
	if err := c.streams(ctx, m, primary, timeout); err != nil {
		return err
	}
	// Slots from when it was primary itself would keep WAL for nobody.
	if _, err := m.query(ctx, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active"); err != nil {
		return err
	}
	m.Server().Staying()
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
func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (change database.Change, err error) {
	fail := func(err error) (database.Change, error) {
		return change, fmt.Errorf("%s leaving: %w", node.Name(), err)
	}
	m, release, err := c.Hold(node.Name())
	if err != nil {
		return fail(err)
	}
	defer release()
	if err := c.mayGo(m); err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, changeTimeout, fmt.Errorf("not done after %v", changeTimeout))
	defer cancel()
	began := time.Now()
	if err := c.halt(ctx, m, manner); err != nil {
		return fail(err)
	}
	c.Drop(m)
	primary := c.primary.Load()
	if primary != nil {
		if err := c.release(ctx, primary, m); err != nil {
			return fail(err)
		}
	}
	change.Accepted = time.Since(began)
	if err := c.Servers.Await(ctx, c.settled); err != nil {
		return fail(err)
	}
	change.Complete = time.Since(began)
	return change, m.discard(ctx)
}

// mayGo refuses a leave after which nobody could be primary.
func (c *cluster) mayGo(m *member) error {
	members, primary := c.current()
	for _, o := range members {
		if o != m && !o.Halted() && (primary != nil || m.Halted()) {
			return nil
		}
	}
	return fmt.Errorf("%w: no other member runs that could be primary", database.ErrFixed)
}

// settled returns nil when all members that run are primary or stream.
func (c *cluster) settled(ctx context.Context) error {
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
