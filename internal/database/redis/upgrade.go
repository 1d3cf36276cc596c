package redis

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

var _ database.UpgradableCluster = (*cluster)(nil)

// Upgrades implements database.Upgradable.
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
		return versionIn(`\b` + c.kind.name + `_version:(\S+)`)(info), err
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
