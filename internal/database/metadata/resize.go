package metadata

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/database"
	"skerry/internal/host"
	"skerry/internal/metadata/client"
)

const (
	// changeTimeout bounds a change of membership.
	changeTimeout = 5 * time.Minute
	// leaveTimeout is how long a removed replica may take to end by itself.
	leaveTimeout = 5 * time.Second
)

// persist asks a replica that serves until the answer is final: what was not done, or may
// have been, is asked again, since changes of membership are harmless to repeat.
func (c *cluster) persist(ctx context.Context, without *replica, change func(context.Context, *client.Client) error) error {
	var final error
	err := c.processes.Await(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, adminTimeout)
		defer cancel()
		by, err := c.serving(ctx, without)
		if err == nil {
			err = change(ctx, by.admin)
		}
		if errors.Is(err, client.ErrRefused) {
			final = err
			return nil
		}
		return err
	})
	return errors.Join(err, final)
}

// Join implements database.Cluster:
//
//	start     an empty replica that waits to be added
//	add       accepted: the group has agreed on the learner
//	promote   the leader's own doing, once it has caught up
//	read      complete: one that has to be agreed on succeeds there
func (c *cluster) Join(ctx context.Context, node host.Host) (change database.Change, err error) {
	if !c.changing.TryLock() {
		return change, fmt.Errorf("joining %s: %w", node.Name(), database.ErrBusy)
	}
	defer c.changing.Unlock()
	if len(c.on(node.Name())) > 0 {
		return change, fmt.Errorf("joining %s: %w", node.Name(), database.ErrMember)
	}
	if err := c.errFixed(); err != nil {
		return change, fmt.Errorf("joining %s: %w", node.Name(), err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, changeTimeout, fmt.Errorf("not done after %v", changeTimeout))
	defer cancel()
	began := time.Now()
	r := c.add(c.servers[0], node)
	c.env.Say(Name, "%s is joining", node.Name())
	if err = c.launch(ctx, r, true); err == nil {
		err = c.persist(ctx, r, func(ctx context.Context, by *client.Client) error { return by.AddMember(ctx, r.name, r.peer) })
		change.Accepted = time.Since(began)
	}
	if err == nil {
		err = r.process.Load().Await(ctx, changeTimeout, func(ctx context.Context) error { return c.votes(ctx, r) })
	}
	if err == nil {
		err = r.process.Load().Joined()
	}
	if err != nil {
		return change, errors.Join(fmt.Errorf("joining %s: %w", node.Name(), err), c.undoJoin(ctx, r))
	}
	change.Complete = time.Since(began)
	return change, nil
}

// votes returns nil when another replica says that r has its vote, and r serves.
func (c *cluster) votes(ctx context.Context, r *replica) error {
	by, err := c.serving(ctx, r)
	if err != nil {
		return err
	}
	s, err := by.status(ctx)
	if err != nil {
		return err
	}
	for _, m := range s.Group.Members {
		if m.Name == r.name && m.Votes {
			return r.serves(ctx)
		}
	}
	return fmt.Errorf("%w: %s has no vote yet", ErrNotReady, r.host.Name())
}

// undoJoin takes a replica back that did not come to be one.
func (c *cluster) undoJoin(ctx context.Context, r *replica) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 6*adminTimeout)
	defer cancel()
	if d := r.process.Load(); d != nil {
		err = d.Kill()
	}
	r.halted.Store(true)
	err = errors.Join(err, c.unregister(ctx, r))
	c.drop(r)
	return err
}

// unregister has the group agree that a replica is none any more.
func (c *cluster) unregister(ctx context.Context, r *replica) error {
	err := c.persist(ctx, r, func(ctx context.Context, by *client.Client) error { return by.RemoveMember(ctx, r.name) })
	if errors.Is(err, client.ErrNoMember) {
		return nil
	}
	return err
}

// Leave implements database.Cluster:
//
//	remove   accepted: the group has agreed on it; a leader hands over first
//	wait     complete: no replica lists it, its process has ended
//
// Abrupt, its process is killed first.
func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (change database.Change, err error) {
	fail := func(err error) (database.Change, error) {
		return change, fmt.Errorf("%s leaving: %w", node.Name(), err)
	}
	replicas, unlock, err := c.hold(node)
	if err != nil {
		return fail(err)
	}
	defer unlock()
	if err := c.errFixed(); err != nil {
		return fail(err)
	}
	r := replicas[0]
	ctx, cancel := context.WithTimeoutCause(ctx, changeTimeout, fmt.Errorf("not done after %v", changeTimeout))
	defer cancel()
	if err := c.mayGo(ctx, r, manner); err != nil {
		return fail(err)
	}
	began := time.Now()
	r.process.Load().Leaving()
	if manner == database.Abrupt {
		if err := r.process.Load().Kill(); err != nil {
			return fail(err)
		}
		r.halted.Store(true)
	}
	if err := c.unregister(ctx, r); err != nil {
		return fail(err)
	}
	change.Accepted = time.Since(began)
	if err := c.processes.Await(ctx, func(ctx context.Context) error { return c.forgotten(ctx, r) }); err != nil {
		return fail(err)
	}
	select {
	case <-r.process.Load().Done():
	case <-time.After(leaveTimeout):
		err = r.process.Load().Stop(ctx)
	}
	c.drop(r)
	if err != nil {
		return fail(err)
	}
	change.Complete = time.Since(began)
	return change, nil
}

// mayGo refuses what would leave the group without a majority, when it agrees on the
// removal or afterwards.
func (c *cluster) mayGo(ctx context.Context, r *replica, manner database.Manner) error {
	all := c.current()
	others := 0
	for _, o := range all {
		if o == r || o.halted.Load() {
			continue
		}
		if o.serves(ctx) == nil {
			others++
		}
	}
	if others == 0 {
		return fmt.Errorf("%w: no other replica would serve", database.ErrFixed)
	}
	voters := others
	if manner == database.Graceful && !r.halted.Load() {
		voters++
	}
	for _, need := range []struct{ have, of int }{{voters, len(all)}, {others, len(all) - 1}} {
		if need.have < need.of/2+1 {
			return fmt.Errorf("%w: %d of %d replicas would serve: that is no majority", database.ErrFixed, need.have, need.of)
		}
	}
	return nil
}

// forgotten returns nil when no replica that runs lists r, and they serve.
func (c *cluster) forgotten(ctx context.Context, r *replica) error {
	for _, o := range c.current() {
		if o == r || o.halted.Load() {
			continue
		}
		s, err := o.status(ctx)
		if err != nil {
			return err
		}
		for _, m := range s.Group.Members {
			if m.Name == r.name {
				return fmt.Errorf("%s still lists %s", o.host.Name(), r.host.Name())
			}
		}
		if err := o.serves(ctx); err != nil {
			return err
		}
	}
	return nil
}
