package custom

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

func (c *cluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	if len(c.def.Join) == 0 {
		return database.Change{}, fmt.Errorf("joining %s: %w", node.Name(), database.ErrUnsupported)
	}
	return c.RunJoin(ctx, node, daemon.JoinSteps{
		Join: func(ctx context.Context, timer *daemon.ChangeTimer) error {
			ctx, cancel := c.withTimeout(ctx)
			defer cancel()
			members := append(c.All(), node)
			if err := c.startServer(ctx, node, members, true, true); err != nil {
				return err
			}
			err := c.runSteps(ctx, c.def.Join, change{node: node, members: members, on: "node",
				alive: func() error { return c.checkRunning(node) }, accepted: timer.Accept})
			if err != nil {
				return err
			}
			if err := c.markJoined(node); err != nil {
				return err
			}
			c.Add(node)
			return nil
		},
		Undo: func(ctx context.Context) error { return c.undoJoin(ctx, node) },
	})
}

func (c *cluster) checkRunning(node host.Host) error {
	if len(c.Servers.RunningOn(node.Name())) == 0 {
		return fmt.Errorf("%s on %s %w", c.def.Name, node.Name(), daemon.ErrEnded)
	}
	return nil
}

func (c *cluster) markJoined(node host.Host) error {
	for _, d := range c.Servers.RunningOn(node.Name()) {
		if err := d.ConfirmMember(); err != nil {
			return err
		}
	}
	return c.checkRunning(node)
}

func (c *cluster) undoJoin(ctx context.Context, node host.Host) error {
	ctx, cancel := c.withTimeout(context.WithoutCancel(ctx))
	defer cancel()
	err := c.endServers(ctx, node, database.Abrupt)
	if len(c.def.UndoJoin) == 0 {
		return err
	}
	members := append(c.All(), node)
	return errors.Join(err, c.runSteps(ctx, c.def.UndoJoin, change{node: node, members: members, on: "other"}))
}

func (c *cluster) endServers(ctx context.Context, node host.Host, manner database.Manner) error {
	var errs []error
	for _, d := range c.Servers.RunningOn(node.Name()) {
		if manner == database.Abrupt {
			errs = append(errs, d.Kill())
		} else {
			errs = append(errs, d.Stop(ctx))
		}
	}
	return errors.Join(errs...)
}

func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (database.Change, error) {
	steps, on := c.def.Leave, "node"
	if manner == database.Abrupt {
		steps, on = c.def.LeaveAbrupt, "other"
	}
	if len(steps) == 0 {
		return database.Change{}, fmt.Errorf("%s leaving: %w", node.Name(), database.ErrUnsupported)
	}
	return c.RunLeave(ctx, node, daemon.LeaveSteps[host.Host]{
		Check: func(_ context.Context, node host.Host) error { return c.checkLeave(node) },
		Leave: func(ctx context.Context, member host.Host, timer *daemon.ChangeTimer) error {
			ctx, cancel := c.withTimeout(ctx)
			defer cancel()
			if manner == database.Abrupt {
				if err := c.endServers(ctx, node, manner); err != nil {
					return err
				}
			}
			for _, d := range c.Servers.RunningOn(node.Name()) {
				d.MarkLeaving()
			}
			err := c.runSteps(ctx, steps, change{node: node, members: c.All(), on: on,
				stop: func() error { return c.endServers(ctx, node, database.Graceful) }, accepted: timer.Accept})
			if err != nil {
				for _, d := range c.Servers.RunningOn(node.Name()) {
					d.MarkMember()
				}
				return err
			}
			if err := c.endServers(ctx, node, database.Graceful); err != nil {
				return err
			}
			c.Drop(member)
			return nil
		},
	})
}

func (c *cluster) checkLeave(node host.Host) error {
	switch members := c.All(); {
	case slices.Contains(c.def.Fixed, c.peerOf(node).Index):
		return database.ErrFixed
	case len(members) <= c.def.Can.MinNodes:
		return fmt.Errorf("%w: the cluster needs at least %d members", database.ErrFixed, len(members))
	}
	return nil
}

func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	if err := c.checkRestartable(node); err != nil {
		return fmt.Errorf("halting %s: %w", node.Name(), err)
	}
	if err := c.endServers(ctx, node, manner); err != nil {
		return fmt.Errorf("halting %s: %w", node.Name(), err)
	}
	return nil
}

func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	if err := c.checkRestartable(node); err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	if len(c.Servers.RunningOn(node.Name())) > 0 {
		return nil
	}
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	err := c.startServer(ctx, node, c.All(), false, false)
	if err == nil {
		err = c.Servers.Await(ctx, c.Ready)
	}
	if err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	return nil
}

func (c *cluster) checkRestartable(node host.Host) error {
	switch {
	case !c.def.Can.Restart:
		return database.ErrUnsupported
	case c.On(node.Name()) == nil:
		return database.ErrNotMember
	}
	return nil
}
