package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/machine/host"
)

// Errors of members that were halted.
var (
	errHalted  = errors.New("the member is halted")
	errRunning = errors.New("the member is running")
)

const (
	// shutdownTimeout bounds the time of a server to write its data and end.
	shutdownTimeout = 60 * time.Second
	// reviveTimeout bounds the wait until all members see a revived member, maybe after a failover.
	reviveTimeout = 60 * time.Second
	// snapshot is the file of a graceful halt without an append-only file.
	snapshot = "dump.rdb"
)

// Halt implements database.Cluster. A graceful halt loses nothing: the server flushes its
// append-only file, or writes a snapshot if it has none. After SIGKILL a server restarts
// with its append-only file, or empty. The content of the file depends on appendfsync
// (flushAppendOnlyFile in Redis' aof.c):
//
//	no, always   all acknowledged writes: the file is written before the answer
//	everysec     not the writes acknowledged during the file's last fsync: they wait up to
//	             2 s for its end, and their answers do not
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

func (m *member) saveAndShutDown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	d := m.Server()
	d.MarkLeaving()
	// An ending server does not answer.
	err := m.admin.ShutdownSave(ctx).Err()
	select {
	case <-d.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for its snapshot: %w: %w", context.Cause(ctx), err)
	}
}

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
	// The snapshot is outdated from now on: a killed server would restart with it.
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

// forgetDeparted makes a revived member forget the nodes that left while it was halted.
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
			return fmt.Errorf("forgetting %s: %w", p.addr, err)
		}
	}
	return nil
}

// checkServing returns nil if a revived member serves, or is connected to all running ones while others are halted.
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

func (v view) checkLink(addr string) error {
	for _, p := range v.peers {
		if p.addr == addr && (p.hasFlag("fail") || p.hasFlag("fail?") || !p.link && !p.hasFlag("myself")) {
			return fmt.Errorf("%w: %s reports %s as %s", database.ErrNotReady, v.host.Name(), p.addr, p.stateText())
		}
	}
	return nil
}

func (c *cluster) checkNoneHalted() error {
	for _, m := range c.haltedMembers() {
		return advice.With(fmt.Errorf("%w: %s on %s is halted", database.ErrNotReady, c.kind.name, m.host.Name()),
			"revive it, or let it leave abruptly")
	}
	return nil
}

var _ database.UpgradableCluster = (*cluster)(nil)

func (d *Redis) Upgrades() database.Upgrades {
	return database.Upgrades{Recipes: d.kind.recipes, Steps: d.kind.upgrades, Rule: "the makers support newer releases only"}
}

// UpgradeOrder implements database.UpgradableCluster: replicas before masters, as
// https://redis.io/docs/latest/operate/oss_and_stack/management/scaling/ recommends.
func (c *cluster) UpgradeOrder(ctx context.Context, nodes []string) ([]string, error) {
	views, err := c.readViews(ctx)
	rank := map[string]int{}
	for _, v := range views {
		if v.member != nil && v.self.master == "" {
			rank[v.Name()] = 1
		}
	}
	return slices.SortedStableFunc(slices.Values(nodes), func(a, b string) int { return cmp.Compare(rank[a], rank[b]) }), err
}

// Upgrade implements database.UpgradableCluster. A master with a replica is first replaced by a
// manual failover, which loses nothing, and stays a replica afterwards. The slots of a master
// without replicas are not served while it restarts.
func (c *cluster) Upgrade(ctx context.Context, node host.Host, to database.Installation) (database.Change, error) {
	return c.RunUpgrade(ctx, c, node, to, c.yieldSlots, func(ctx context.Context, m *member) (string, error) {
		info, err := m.admin.Info(ctx, "server").Result()
		return c.kind.infoVersion(info), err
	})
}

// yieldSlots makes a replica replace a master.
//
// An old server cannot read the snapshot of a newer one. So a replica with the old program takes
// over while there is one: otherwise it would be the replica of a newer master.
func (c *cluster) yieldSlots(ctx context.Context, m *member) error {
	v, err := m.readView(ctx)
	if err != nil {
		return err
	}
	heirs := v.replicas()
	if v.self.master != "" || len(heirs) == 0 {
		return nil
	}
	ready, cancel := context.WithTimeoutCause(ctx, reviveTimeout, fmt.Errorf("the cluster is not ready after %v", reviveTimeout))
	defer cancel()
	if err := c.Servers.Await(ready, c.Ready); err != nil {
		return err
	}
	heir := heirs[0]
	for _, o := range c.others(m) {
		i := slices.IndexFunc(heirs, func(p peer) bool { return p.addr == o.addr })
		if i >= 0 && c.Installation(o.Name()).Version == c.Installation(m.Name()).Version {
			heir = heirs[i]
		}
	}
	return c.failOver(ctx, m, heir)
}
