package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/host"
)

var errOpenSlots = errors.New("slots are on the move")

// pipelined is how many keys redis-cli moves at a time.
const pipelined = "100"

// Join implements database.Cluster, by the documented steps:
//
//	add-node    accepted: the new node has been introduced to one member
//	  wait      until every member knows it; a rebalance before that fails half-way
//	rebalance   moves slots with their keys to it, one after the other
//	check       complete: every slot has one owner, and all members name the same
func (c *cluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	var change database.Change
	if !c.resizing.TryLock() {
		return change, fmt.Errorf("joining %s: %w", node.Name(), database.ErrBusy)
	}
	defer c.resizing.Unlock()
	if c.member(node) != nil {
		return change, fmt.Errorf("joining %s: %w", node.Name(), database.ErrMember)
	}
	if err := c.Ready(ctx); err != nil {
		return change, fmt.Errorf("joining %s: %w", node.Name(), err)
	}
	c.say("%s is joining", node.Name())
	began := time.Now()
	entry := c.current()[0].addr
	m, err := startMember(ctx, node, c.env.Installation, c.options)
	if err != nil {
		return change, fmt.Errorf("joining %s: %w", node.Name(), err)
	}
	c.add(m)
	if err := c.cli(ctx, "add-node", m.addr, entry); err != nil {
		return change, c.undoJoin(ctx, m, err)
	}
	change.Accepted = time.Since(began)
	if err := c.await(ctx, c.Ready); err != nil {
		return change, c.undoJoin(ctx, m, err)
	}
	c.say("moving slots to %s", node.Name())
	if err := c.cli(ctx, "rebalance", entry, "--cluster-use-empty-masters", "--cluster-pipeline", pipelined); err != nil {
		return change, c.undoJoin(ctx, m, err)
	}
	if err := c.settled(ctx, entry); err != nil {
		return change, fmt.Errorf("joining %s: %w", node.Name(), err)
	}
	change.Complete = time.Since(began)
	return change, nil
}

// settled returns when all members agree and no slot is on the move any more.
func (c *cluster) settled(ctx context.Context, entry string) error {
	if err := c.await(ctx, func(ctx context.Context) error {
		if err := c.Ready(ctx); err != nil {
			return err
		}
		return c.closed(ctx)
	}); err != nil {
		return err
	}
	return c.cli(ctx, "check", entry)
}

// closed returns nil when no slot is on the move.
func (c *cluster) closed(ctx context.Context) error {
	views, err := c.lookAll(ctx, false)
	if err != nil {
		return err
	}
	for _, v := range views {
		if v.self.open > 0 {
			return fmt.Errorf("%w at %s", errOpenSlots, v.host.Name())
		}
	}
	return nil
}

// undoTimeout bounds the repair after a change that failed.
const undoTimeout = 60 * time.Second

// undoJoin repairs the cluster after a join that failed. A slot left on the move makes
// redis-cli refuse everything but fix, which may finish the move into the new node:
// only when that owns nothing may it go again.
func (c *cluster) undoJoin(ctx context.Context, m *member, cause error) error {
	cause = fmt.Errorf("joining %s: %w", m.host.Name(), cause)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	if c.Err() != nil {
		return errors.Join(cause, c.Err()) // a server died: there is nothing to repair with
	}
	entry := c.current()[0].addr
	if err := c.closed(ctx); err != nil {
		if err := c.cli(ctx, "fix", entry, "--cluster-yes"); err != nil {
			return errors.Join(cause, err)
		}
	}
	v, err := m.look(ctx)
	if err != nil {
		return errors.Join(cause, err)
	}
	if n := v.self.owned(); n > 0 {
		return fmt.Errorf("%w; it stays a member with %d slots", cause, n)
	}
	if len(v.peers) > 1 {
		if err := c.cli(ctx, "del-node", entry, v.self.id); err != nil {
			return errors.Join(cause, err)
		}
	}
	return errors.Join(cause, c.remove(ctx, m))
}

// Leave implements database.Cluster, by the documented steps:
//
//	rebalance   with weight 0 for the node: its slots go to the others
//	  wait      until no client asks it any more, to be sent elsewhere
//	del-node    accepted: the others have been told to forget it
//	  wait      complete: none of them knows it any more, and its process has ended
func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (database.Change, error) {
	var change database.Change
	fail := func(err error) (database.Change, error) {
		return change, fmt.Errorf("%s leaving: %w", node.Name(), err)
	}
	if !c.resizing.TryLock() {
		return fail(database.ErrBusy)
	}
	defer c.resizing.Unlock()
	m := c.member(node)
	if m == nil {
		return fail(database.ErrNotMember)
	}
	if manner == database.Abrupt {
		return fail(database.ErrUnsupported)
	}
	if err := c.Ready(ctx); err != nil {
		return fail(err)
	}
	v, err := m.look(ctx)
	if err != nil {
		return fail(err)
	}
	if err := mayGo(v); err != nil {
		return fail(err)
	}
	began := time.Now()
	entry := c.other(m).addr
	if v.self.owned() > 0 {
		c.say("moving the slots of %s away", node.Name())
		if err := c.empty(ctx, m, v.self.id, entry); err != nil {
			return fail(err)
		}
		if err := m.drain(ctx); err != nil {
			return fail(err)
		}
	}
	if err := c.cli(ctx, "del-node", entry, v.self.id); err != nil {
		return fail(err)
	}
	change.Accepted = time.Since(began)
	if err := c.remove(ctx, m); err != nil {
		return fail(err)
	}
	if err := c.settled(ctx, entry); err != nil {
		return fail(err)
	}
	change.Complete = time.Since(began)
	return change, nil
}

// empty moves every slot away from a member.
func (c *cluster) empty(ctx context.Context, m *member, id, entry string) error {
	err := c.cli(ctx, "rebalance", entry, "--cluster-weight", id+"=0", "--cluster-pipeline", pipelined)
	if err != nil {
		if open := c.closed(ctx); open == nil {
			return err
		}
		return errors.Join(err, c.cli(ctx, "fix", entry, "--cluster-yes"))
	}
	v, err := m.look(ctx)
	if err != nil {
		return err
	}
	if n := v.self.owned(); n > 0 {
		return fmt.Errorf("it still owns %d slots after a rebalance", n)
	}
	return nil
}

const (
	// drainQuiet is how long a node must not have redirected anybody before it may
	// go: well over the time that a client takes to learn where slots are.
	drainQuiet = 500 * time.Millisecond
	// drainTimeout bounds the wait for clients that never learn.
	drainTimeout = 5 * time.Second
)

// drain waits until clients have stopped asking a member that has no slots left.
func (m *member) drain(ctx context.Context) error {
	last, began := "", time.Now()
	for quiet := began; time.Since(quiet) < drainQuiet && time.Since(began) < drainTimeout; {
		stats, err := m.admin.Info(ctx, "errorstats").Result()
		if err != nil {
			return fmt.Errorf("asking redis on %s: %w", m.host.Name(), err)
		}
		if moved := redirected(stats); moved != last {
			last, quiet = moved, time.Now()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(poll):
		}
	}
	return nil
}

// redirected finds "errorstat_MOVED:count=12" in INFO errorstats.
func redirected(stats string) string {
	for line := range strings.Lines(stats) {
		if strings.HasPrefix(line, "errorstat_MOVED:") {
			return line
		}
	}
	return ""
}

// mayGo refuses what would leave the cluster without a majority or replicas without
// their master.
func mayGo(v view) error {
	if v.self.master != "" {
		return nil
	}
	masters := 0
	for _, p := range v.peers {
		if p.master == v.self.id {
			return fmt.Errorf("%w: %s is its replica", database.ErrFixed, p.addr)
		}
		if p.is("master") {
			masters++
		}
	}
	if masters <= minMasters {
		return fmt.Errorf("%w: Redis Cluster needs at least %d masters", database.ErrFixed, minMasters)
	}
	return nil
}

// other is a member that stays.
func (c *cluster) other(leaving *member) *member {
	for _, m := range c.current() {
		if m != leaving {
			return m
		}
	}
	return leaving
}
