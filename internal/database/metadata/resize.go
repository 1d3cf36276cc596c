package metadata

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
	"skerry/systems/metadata/client"
)

// persist asks a replica that serves for a change until it is granted or refused. Changes of
// membership are harmless to repeat.
func (c *cluster) persist(ctx context.Context, without *replica, change func(context.Context, *client.Client) error) error {
	refused := func(err error) bool { return errors.Is(err, client.ErrRefused) }
	return daemon.RetryChange(ctx, c.Servers.Await, refused, func(ctx context.Context) error {
		by, err := c.serving(ctx, without)
		if err != nil {
			return err
		}
		return change(ctx, by.admin)
	})
}

// Join implements database.Cluster:
//
//	start     an empty replica that waits to be added
//	add       accepted: the group has agreed on the learner
//	promote   the leader's own doing, once it has caught up
//	read      complete: one that has to be agreed on succeeds there
func (c *cluster) Join(ctx context.Context, node host.Host) (change database.Change, err error) {
	release, err := c.Vacant(node.Name())
	if err != nil {
		return change, fmt.Errorf("joining %s: %w", node.Name(), err)
	}
	defer release()
	if err := c.errFixed(); err != nil {
		return change, fmt.Errorf("joining %s: %w", node.Name(), err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, daemon.ChangeTimeout, fmt.Errorf("not done after %v", daemon.ChangeTimeout))
	defer cancel()
	began := time.Now()
	r := c.add(c.layout[0], node)
	c.Env.ReportProgress(Name, "%s is joining", node.Name())
	if err = c.launch(ctx, r, true); err == nil {
		err = c.persist(ctx, r, func(ctx context.Context, by *client.Client) error { return by.AddMember(ctx, r.name, r.peer) })
		change.Accepted = time.Since(began)
	}
	if err == nil {
		err = r.Server().Await(ctx, daemon.ChangeTimeout, func(ctx context.Context) error { return c.votes(ctx, r) })
	}
	if err == nil {
		err = r.Server().Joined()
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
	return fmt.Errorf("%w: %s has no vote yet", database.ErrNotReady, r.host.Name())
}

// undoJoin takes a replica back that did not come to be one.
func (c *cluster) undoJoin(ctx context.Context, r *replica) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 6*adminTimeout)
	defer cancel()
	halted := r.Halt(ctx, database.Abrupt)
	return errors.Join(halted, c.unregister(ctx, r), c.drop(r))
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
	replicas, unlock, err := c.HoldAll(node.Name())
	if err != nil {
		return fail(err)
	}
	defer unlock()
	if err := c.errFixed(); err != nil {
		return fail(err)
	}
	steps := daemon.LeaveSteps[*replica]{CheckLeave: c.mayGo, Remove: c.unregister, Forgotten: c.forgotten, Drop: c.drop}
	if change, err = steps.Leave(ctx, &c.Servers, replicas[0], manner); err != nil {
		return fail(err)
	}
	return change, nil
}

// mayGo refuses what would leave the group without a majority.
func (c *cluster) mayGo(ctx context.Context, r *replica, manner database.Manner) error {
	all := c.All()
	others := 0
	for _, o := range daemon.RunningExcept(all, r) {
		if o.serves(ctx) == nil {
			others++
		}
	}
	return daemon.CheckLeave(all, r, manner, others)
}

// forgotten returns nil when no replica that runs lists r, and they serve.
func (c *cluster) forgotten(ctx context.Context, r *replica) error {
	for _, o := range daemon.RunningExcept(c.All(), r) {
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
