package metadata

import (
	"context"
	"errors"
	"fmt"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
	"skerry/systems/metadata/client"
)

// retryChange repeats a change at a serving replica until it is accepted or refused.
func (c *cluster) retryChange(ctx context.Context, without *replica, change func(context.Context, *client.Client) error) error {
	refused := func(err error) bool { return errors.Is(err, client.ErrRefused) }
	return daemon.RetryChange(ctx, c.Servers.Await, refused, func(ctx context.Context) error {
		by, err := c.findServing(ctx, without)
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
func (c *cluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	var r *replica
	return c.RunJoin(ctx, node, daemon.JoinSteps{
		Timeout: daemon.ChangeTimeout,
		Check:   func(context.Context) error { return c.checkResizable() },
		Join: func(ctx context.Context, timer *daemon.ChangeTimer) error {
			r = c.addReplica(c.layout[0], node)
			if err := c.startNew(ctx, r, true); err != nil {
				return err
			}
			err := c.retryChange(ctx, r, func(ctx context.Context, by *client.Client) error { return by.AddMember(ctx, r.name, r.peer) })
			if err != nil {
				return err
			}
			timer.Accept()
			err = r.Server().Await(ctx, daemon.ChangeTimeout, func(ctx context.Context) error { return c.checkVotes(ctx, r) })
			if err != nil {
				return err
			}
			return r.Server().ConfirmMember()
		},
		Undo: func(ctx context.Context) error { return c.undoJoin(ctx, r) },
	})
}

// checkVotes returns nil when another replica reports that r votes, and r serves.
func (c *cluster) checkVotes(ctx context.Context, r *replica) error {
	by, err := c.findServing(ctx, r)
	if err != nil {
		return err
	}
	s, err := by.queryStatus(ctx)
	if err != nil {
		return err
	}
	for _, m := range s.Group.Members {
		if m.Name == r.name && m.Votes {
			return r.checkServing(ctx)
		}
	}
	return fmt.Errorf("%w: %s has no vote yet", database.ErrNotReady, r.host.Name())
}

func (c *cluster) undoJoin(ctx context.Context, r *replica) error {
	ctx, cancel := context.WithTimeout(ctx, 6*adminTimeout)
	defer cancel()
	halted := r.Halt(ctx, database.Abrupt)
	return errors.Join(halted, c.removeMember(ctx, r), c.dropReplica(r))
}

func (c *cluster) removeMember(ctx context.Context, r *replica) error {
	err := c.retryChange(ctx, r, func(ctx context.Context, by *client.Client) error { return by.RemoveMember(ctx, r.name) })
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
func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (database.Change, error) {
	return daemon.LeaveQuorum(ctx, c.Cluster, node, manner, daemon.QuorumSteps[*replica]{
		Check: c.checkLeave, Remove: c.removeMember, Forgotten: c.checkForgotten, Drop: c.dropReplica,
	})
}

func (c *cluster) checkLeave(ctx context.Context, r *replica, manner database.Manner) error {
	if err := c.checkResizable(); err != nil {
		return err
	}
	all := c.All()
	others := 0
	for _, o := range daemon.RunningExcept(all, r) {
		if o.checkServing(ctx) == nil {
			others++
		}
	}
	return daemon.CheckLeave(all, r, manner, others)
}

func (c *cluster) checkForgotten(ctx context.Context, r *replica) error {
	for _, o := range daemon.RunningExcept(c.All(), r) {
		s, err := o.queryStatus(ctx)
		if err != nil {
			return err
		}
		for _, m := range s.Group.Members {
			if m.Name == r.name {
				return fmt.Errorf("%s still lists %s", o.host.Name(), r.host.Name())
			}
		}
		if err := o.checkServing(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	return c.RunHalt(ctx, node, func(ctx context.Context, _ *replica) error {
		return daemon.ForEach(ctx, c.AllOn(node.Name()), func(ctx context.Context, _ int, r *replica) error { return r.Halt(ctx, manner) })
	})
}

func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	return c.RunRevive(ctx, node, func(ctx context.Context, _ *replica) error {
		return daemon.ForEach(ctx, c.AllOn(node.Name()), func(ctx context.Context, _ int, r *replica) error {
			if r.Server().Running() {
				return nil
			}
			if err := c.startProcess(ctx, r, false); err != nil {
				return err
			}
			return r.Server().Await(ctx, daemon.ChangeTimeout, r.checkServing)
		})
	})
}

func (c *cluster) checkResizable() error {
	if c.options.resizable() {
		return nil
	}
	return errors.Join(database.ErrUnsupported, errors.New("members join and leave where one server is a group of replicas"))
}
