package redis

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/machine/host"
)

// Errors of members that were halted.
var (
	errHalted  = errors.New("it is halted")
	errRunning = errors.New("it runs")
)

const (
	// shutdownTimeout bounds what a server takes to write its data and end.
	shutdownTimeout = 60 * time.Second
	// reviveTimeout bounds how long the others may take to agree that a member that
	// came back serves: a failover that had begun may end first.
	reviveTimeout = 60 * time.Second
	// snapshot is the file that a server without an append-only file leaves behind.
	snapshot = "dump.rdb"
)

// Halt implements database.Cluster. Gracefully, nothing is lost: the append-only file
// is flushed, or a snapshot taken where there is none. With SIGKILL a server keeps what
// is in its append-only file; without one it comes back empty. What is in it depends on
// appendfsync (flushAppendOnlyFile in Redis' aof.c):
//
//	no, always   every write that was acknowledged: it is written before the answer
//	everysec     not what was acknowledged while the file's last fsync was under way: the
//	             write waits for its end, for 2 s at most, and the answer does not
func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	fail := func(err error) error { return fmt.Errorf("halting %s on %s: %w", c.kind.name, node.Name(), err) }
	m := c.On(node.Name())
	if m == nil {
		return fail(database.ErrNotMember)
	}
	if !m.MarkHalted() {
		return fail(errHalted)
	}
	if manner == database.Abrupt {
		return m.Kill()
	}
	if !c.options.persistent {
		if err := m.saveAndShutDown(ctx); err != nil {
			return fail(err)
		}
	}
	return m.Server().Stop(ctx)
}

// saveAndShutDown has a server write a snapshot and end.
func (m *member) saveAndShutDown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	d := m.Server()
	d.Leaving()
	// A server that ends does not answer.
	err := m.admin.ShutdownSave(ctx).Err()
	select {
	case <-d.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for its snapshot: %w: %w", context.Cause(ctx), err)
	}
}

// Revive implements database.Cluster. The member serves when it says that the cluster
// does, and the others that it is there again.
func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	fail := func(err error) error { return fmt.Errorf("reviving %s on %s: %w", c.kind.name, node.Name(), err) }
	m := c.On(node.Name())
	if m == nil {
		return fail(database.ErrNotMember)
	}
	if !m.Halted() {
		return fail(errRunning)
	}
	if err := c.launch(ctx, m, false); err != nil {
		return fail(err)
	}
	// What a snapshot says is old from now on: a server that is killed would come back
	// with it.
	if err := node.Files().Remove(ctx, filepath.Join(m.dir, snapshot)); err != nil {
		return fail(err)
	}
	if err := c.forgetDeparted(ctx, m); err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, reviveTimeout, fmt.Errorf("it does not serve after %v", reviveTimeout))
	defer cancel()
	if err := c.Servers.Await(ctx, func(ctx context.Context) error { return c.checkServing(ctx, m) }); err != nil {
		return fail(err)
	}
	return nil
}

// forgetDeparted has a member that was away forget the nodes that have left meanwhile.
func (c *cluster) forgetDeparted(ctx context.Context, m *member) error {
	views, err := c.readViews(ctx)
	if err != nil || len(views) < 2 {
		return err
	}
	known := make(map[string]bool)
	var own view
	for _, v := range views {
		if v.member == m {
			own = v
			continue
		}
		for _, p := range v.peers {
			known[p.id] = true
		}
	}
	for _, p := range own.peers {
		if known[p.id] || p.hasFlag("myself") {
			continue
		}
		if err := m.admin.ClusterForget(ctx, p.id).Err(); err != nil {
			return fmt.Errorf("having it forget %s: %w", p.addr, err)
		}
	}
	return nil
}

// checkServing returns nil when a member is back. With others still away the cluster may not
// say that it serves; then the member must be in touch with those that are there.
func (c *cluster) checkServing(ctx context.Context, m *member) error {
	if len(c.haltedMembers()) == 0 {
		return c.Ready(ctx)
	}
	views, err := c.readViews(ctx)
	if err != nil {
		return err
	}
	for _, v := range views {
		if err := v.checkLink(m.addr); err != nil {
			return err
		}
	}
	return checkReplication(ctx, views)
}

// checkLink returns nil when a view has a node as one that is in touch.
func (v view) checkLink(addr string) error {
	for _, p := range v.peers {
		if p.addr == addr && (p.hasFlag("fail") || p.hasFlag("fail?") || !p.link && !p.hasFlag("myself")) {
			return fmt.Errorf("%w: %s says that %s is %s", database.ErrNotReady, v.host.Name(), p.addr, p.stateText())
		}
	}
	return nil
}

// checkNoneHalted returns nil when no member is halted.
func (c *cluster) checkNoneHalted() error {
	for _, m := range c.haltedMembers() {
		return advice.With(fmt.Errorf("%w: %s on %s is halted", database.ErrNotReady, c.kind.name, m.host.Name()),
			"revive it, or let it leave abruptly")
	}
	return nil
}
