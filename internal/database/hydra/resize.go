package hydra

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/database"
	"skerry/internal/host"
	"skerry/internal/hydra/api"
	"skerry/internal/hydra/client"
)

const (
	// changeTimeout bounds a change of membership.
	changeTimeout = 5 * time.Minute
	// leaveTimeout is how long a removed member may take to end by itself.
	leaveTimeout = 5 * time.Second
)

// persist asks until the answer is final: what was not done, or may have been, is asked
// again, since changes of membership are harmless to repeat.
func persist(ctx context.Context, wait func(context.Context, func(context.Context) error) error, ask func(context.Context) error) error {
	var final error
	err := wait(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, adminTimeout)
		defer cancel()
		err := ask(ctx)
		if err != nil && errors.Is(err, client.ErrBadRequest) {
			final = err
			return nil
		}
		return err
	})
	return errors.Join(err, final)
}

// Join implements database.Cluster:
//
//	add      accepted: the cluster has agreed on the member
//	start    the learner fetches the log, or a snapshot, without a vote
//	promote  the leader's own doing, once it has caught up
//	read     complete: one that has to be agreed on succeeds there
func (c *cluster) Join(ctx context.Context, node host.Host) (change database.Change, err error) {
	if !c.changing.TryLock() {
		return change, fmt.Errorf("joining %s: %w", node.Name(), database.ErrBusy)
	}
	defer c.changing.Unlock()
	if c.member(node.Name()) != nil {
		return change, fmt.Errorf("joining %s: %w", node.Name(), database.ErrMember)
	}
	if c.options.direct {
		return change, fmt.Errorf("joining %s: %w: it is one SQL database", node.Name(), database.ErrUnsupported)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, changeTimeout, fmt.Errorf("not done after %v", changeTimeout))
	defer cancel()
	began := time.Now()
	m, err := c.add(node)
	if err != nil {
		return change, fmt.Errorf("joining %s: %w", node.Name(), err)
	}
	c.say("%s is joining", node.Name())
	err = c.register(ctx, m)
	change.Accepted = time.Since(began)
	if err == nil {
		err = c.takeIn(ctx, m)
	}
	if err != nil {
		return change, errors.Join(fmt.Errorf("joining %s: %w", node.Name(), err), c.undoJoin(ctx, m))
	}
	change.Complete = time.Since(began)
	return change, nil
}

// register has the cluster agree on a new member.
func (c *cluster) register(ctx context.Context, m *member) error {
	return persist(ctx, c.servers.Await, func(ctx context.Context) error {
		entry, err := c.serving(ctx, m)
		if err != nil {
			return err
		}
		_, err = entry.admin.AddMember(ctx, api.Member{ID: m.id, Name: m.host.Name(), Cloud: m.cloud, Peer: m.peer, API: m.addr, Witness: m.witness})
		return err
	})
}

// takeIn starts a member that the cluster has agreed on and waits until it has its vote.
func (c *cluster) takeIn(ctx context.Context, m *member) error {
	if err := c.launch(ctx, m, c.current(), true); err != nil {
		return err
	}
	d := m.server.Load()
	err := d.Await(ctx, changeTimeout, func(ctx context.Context) error {
		there, err := c.listed(ctx, m)
		switch {
		case err != nil:
			return err
		case there == nil || there.Learner:
			return fmt.Errorf("%w: %s has no vote yet", ErrNotReady, m.host.Name())
		}
		return m.serves(ctx)
	})
	if err != nil {
		return err
	}
	return d.Joined()
}

// listed is what another member's list says of a member, nil when it is not on it.
func (c *cluster) listed(ctx context.Context, m *member) (*api.Member, error) {
	entry, err := c.serving(ctx, m)
	if err != nil {
		return nil, err
	}
	list, err := entry.admin.Members(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking hydra on %s for the members: %w", entry.host.Name(), err)
	}
	for _, o := range list {
		if o.ID == m.id {
			return &o, nil
		}
	}
	return nil, nil
}

// undoJoin takes a member back that did not come to be one.
func (c *cluster) undoJoin(ctx context.Context, m *member) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 6*adminTimeout)
	defer cancel()
	var errs []error
	if d := m.server.Load(); d != nil {
		errs = append(errs, d.Kill())
	}
	m.halted.Store(true)
	errs = append(errs, c.unregister(ctx, m))
	return errors.Join(append(errs, c.drop(m))...)
}

// Leave implements database.Cluster:
//
//	transfer   where it leads, so that no election is needed
//	remove     accepted: the cluster has agreed on it
//	wait       complete: no member lists it, its process has ended by itself
//
// Abrupt, its process is killed first.
func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (change database.Change, err error) {
	fail := func(err error) (database.Change, error) {
		return change, fmt.Errorf("%s leaving: %w", node.Name(), err)
	}
	if !c.changing.TryLock() {
		return fail(database.ErrBusy)
	}
	defer c.changing.Unlock()
	m := c.member(node.Name())
	if m == nil {
		return fail(database.ErrNotMember)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, changeTimeout, fmt.Errorf("not done after %v", changeTimeout))
	defer cancel()
	if err := c.mayGo(ctx, m, manner); err != nil {
		return fail(err)
	}
	began := time.Now()
	if manner == database.Abrupt {
		if err := m.server.Load().Kill(); err != nil {
			return fail(err)
		}
		m.halted.Store(true)
	} else {
		c.yield(ctx, m)
	}
	m.server.Load().Leaving()
	if err := c.unregister(ctx, m); err != nil {
		return fail(err)
	}
	change.Accepted = time.Since(began)
	if err := c.servers.Await(ctx, func(ctx context.Context) error { return c.forgotten(ctx, m) }); err != nil {
		return fail(err)
	}
	select {
	case <-m.server.Load().Done():
	case <-time.After(leaveTimeout):
		err = m.server.Load().Stop(ctx)
	}
	if err := errors.Join(err, c.drop(m)); err != nil {
		return fail(err)
	}
	change.Complete = time.Since(began)
	return change, nil
}

// mayGo refuses what would leave the cluster without a majority, at the time that it
// agrees on the removal or afterwards, or without a database.
func (c *cluster) mayGo(ctx context.Context, m *member, manner database.Manner) error {
	members := c.current()
	others, databases := 0, 0
	for _, o := range members {
		if o == m || o.halted.Load() {
			continue
		}
		if s, err := o.status(ctx); err == nil && s.Role != "learner" && s.Leader != "" {
			others++
			if !o.witness {
				databases++
			}
		}
	}
	if databases == 0 {
		return fmt.Errorf("%w: no other member with a database would serve", database.ErrFixed)
	}
	voters := others
	if manner == database.Graceful && !m.halted.Load() {
		voters++
	}
	for _, need := range []struct{ have, of int }{{voters, len(members)}, {others, len(members) - 1}} {
		if need.have < need.of/2+1 {
			return fmt.Errorf("%w: %d of %d members would serve: that is no majority", database.ErrFixed, need.have, need.of)
		}
	}
	return nil
}

// yield has a leader hand over; where that fails an election decides.
func (c *cluster) yield(ctx context.Context, m *member) {
	s, err := m.status(ctx)
	if err != nil || s.Leader != m.host.Name() {
		return
	}
	if other, err := c.serving(ctx, m); err == nil {
		ctx, cancel := context.WithTimeout(ctx, adminTimeout)
		defer cancel()
		if err := m.admin.TransferLeader(ctx, other.host.Name()); err != nil {
			c.log.Warn("the leader did not hand over", "node", m.host.Name(), "error", err)
		}
	}
}

// unregister has the cluster agree that a member is none any more.
func (c *cluster) unregister(ctx context.Context, m *member) error {
	return persist(ctx, c.servers.Await, func(ctx context.Context) error {
		entry, err := c.serving(ctx, m)
		if err != nil {
			return err
		}
		return entry.admin.RemoveMember(ctx, m.id)
	})
}

// forgotten returns nil when no member that runs lists m, and they serve.
func (c *cluster) forgotten(ctx context.Context, m *member) error {
	for _, o := range c.current() {
		if o == m || o.halted.Load() {
			continue
		}
		list, err := o.admin.Members(ctx)
		if err != nil {
			return err
		}
		for _, l := range list {
			if l.ID == m.id {
				return fmt.Errorf("%s still lists %s", o.host.Name(), m.host.Name())
			}
		}
		if err := o.serves(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Halt implements database.Cluster. SIGTERM has a leader hand over first.
func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	m, unlock, err := c.hold(node)
	if err != nil {
		return fmt.Errorf("halting %s: %w", node.Name(), err)
	}
	defer unlock()
	if m.halted.Load() {
		return nil
	}
	m.halted.Store(true)
	if manner == database.Abrupt {
		return m.server.Load().Kill()
	}
	return m.server.Load().Stop(ctx)
}

// Revive implements database.Cluster: it returns when a read that has to be agreed on
// succeeds at the member.
func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	m, unlock, err := c.hold(node)
	if err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	defer unlock()
	if m.server.Load().Running() {
		return nil
	}
	if err := c.run(ctx, m, false); err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	if err := m.server.Load().Await(ctx, changeTimeout, m.serves); err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	return nil
}

// hold finds a member and keeps others from changing it.
func (c *cluster) hold(node host.Host) (*member, func(), error) {
	if !c.changing.TryLock() {
		return nil, nil, database.ErrBusy
	}
	m := c.member(node.Name())
	if m == nil {
		c.changing.Unlock()
		return nil, nil, database.ErrNotMember
	}
	return m, c.changing.Unlock, nil
}
