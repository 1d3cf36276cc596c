package custom

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

func (c *cluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	var result database.Change
	fail := func(err error) (database.Change, error) {
		return result, fmt.Errorf("joining %s: %w", node.Name(), err)
	}
	if len(c.def.Join) == 0 {
		return fail(database.ErrUnsupported)
	}
	release, err := c.Vacant(node.Name())
	if err != nil {
		return fail(err)
	}
	defer release()
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	c.ReportProgress("%s is joining", node.Name())
	began, members := time.Now(), append(c.All(), node)
	err = c.startServer(ctx, node, members, true, true)
	if err == nil {
		err = c.runSteps(ctx, c.def.Join, change{node: node, members: members, on: "node",
			alive: func() error { return c.checkRunning(node) }, accepted: func() { result.Accepted = time.Since(began) }})
	}
	if err == nil {
		err = c.markJoined(node)
	}
	if err != nil {
		return fail(errors.Join(err, c.undoJoin(ctx, node)))
	}
	c.Add(node)
	result.Complete = time.Since(began)
	result.Accepted = min(max(result.Accepted, 1), result.Complete)
	return result, nil
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
	var result database.Change
	fail := func(err error) (database.Change, error) {
		return result, fmt.Errorf("%s leaving: %w", node.Name(), err)
	}
	steps, on := c.def.Leave, "node"
	if manner == database.Abrupt {
		steps, on = c.def.LeaveAbrupt, "other"
	}
	if len(steps) == 0 {
		return fail(database.ErrUnsupported)
	}
	member, release, err := c.Hold(node.Name())
	if err != nil {
		return fail(err)
	}
	defer release()
	members := c.All()
	switch i := c.peerOf(node).Index; {
	case slices.Contains(c.def.Fixed, i):
		return fail(database.ErrFixed)
	case len(members) <= c.def.Can.MinNodes:
		return fail(fmt.Errorf("%w: the cluster needs at least %d members", database.ErrFixed, len(members)))
	}
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	c.ReportProgress("%s is leaving", node.Name())
	began := time.Now()
	if manner == database.Abrupt {
		if err := c.endServers(ctx, node, manner); err != nil {
			return fail(err)
		}
	}
	for _, d := range c.Servers.RunningOn(node.Name()) {
		d.MarkLeaving()
	}
	err = c.runSteps(ctx, steps, change{node: node, members: members, on: on,
		stop:     func() error { return c.endServers(ctx, node, database.Graceful) },
		accepted: func() { result.Accepted = time.Since(began) }})
	if err != nil {
		for _, d := range c.Servers.RunningOn(node.Name()) {
			d.MarkMember()
		}
		return fail(err)
	}
	if err := c.endServers(ctx, node, database.Graceful); err != nil {
		return fail(err)
	}
	c.Drop(member)
	result.Complete = time.Since(began)
	result.Accepted = min(max(result.Accepted, 1), result.Complete)
	return result, nil
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
