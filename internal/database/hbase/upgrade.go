package hbase

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

// Upgrades implements database.Upgradable, by https://hbase.apache.org/book.html#hbase.rolling.upgrade:
// servers of adjacent minor versions run in one cluster.
func (*HBase) Upgrades() database.Upgrades {
	return database.Upgrades{
		Recipes: Recipes, Steps: map[string][]string{"2.5": {"2.6"}},
		Rule: "HBase supports rolling upgrades by one minor version at a time",
	}
}

// UpgradeOrder implements database.UpgradableCluster: the master's node first, as in HBase's rolling-restart.sh.
func (c *cluster) UpgradeOrder(_ context.Context, nodes []string) ([]string, error) {
	first := c.firstNode().Name()
	others := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return n == first })
	if len(others) < len(nodes) {
		return append([]string{first}, others...), nil
	}
	if c.Installation(first).Version == c.Env.Installation.Version {
		return nil, fmt.Errorf("%w: the master is upgraded before the RegionServers, and its node %s is not among %s",
			database.ErrUpgrade, first, strings.Join(nodes, ", "))
	}
	return others, nil
}

// Upgrade implements database.UpgradableCluster. The RegionServer is drained, stopped and started, as by HBase's
// graceful_stop.sh; on the first node, the master is replaced before the new RegionServer starts. HDFS and ZooKeeper
// are other products: their servers stay as they are.
func (c *cluster) Upgrade(ctx context.Context, node host.Host, to database.Installation) (database.Change, error) {
	return c.RunUpgrade(ctx, serverUpgrade{c}, node, to, nil, c.queryVersion)
}

// serverUpgrade is a cluster whose Halt and Revive stop and start the servers of HBase on a node, and not those of
// HDFS and ZooKeeper.
type serverUpgrade struct{ *cluster }

func (u serverUpgrade) Halt(ctx context.Context, node host.Host, _ database.Manner) error {
	c := u.cluster
	_, release, err := c.Hold(node.Name())
	if err != nil {
		return err
	}
	defer release()
	if len(c.activeMembers()) > 1 { // another one can serve the regions
		s, err := c.admin.queryState(ctx)
		if err != nil {
			return err
		}
		server := serverOn(s.live, node.Addr())
		if _, err := c.admin.query(ctx, "decommission", server); err != nil {
			return err
		}
		if err := c.awaitState(ctx, func(ctx context.Context) error { return c.checkDrained(ctx, server) }); err != nil {
			return err
		}
	}
	c.setHalted(node, true)
	// The node of the master is the only one with that role.
	return errors.Join(c.stopRole(ctx, node, regionServer), c.stopRole(ctx, node, hMaster))
}

func (u serverUpgrade) Revive(ctx context.Context, node host.Host) error {
	c := u.cluster
	_, release, err := c.Hold(node.Name())
	if err != nil {
		return err
	}
	defer release()
	began := time.Now()
	var servers []*daemon.Daemon
	roles := []role{regionServer}
	if node.Name() == c.firstNode().Name() {
		roles = []role{hMaster, regionServer}
	}
	for _, r := range roles {
		d, err := c.startRole(ctx, node, r, true)
		if err != nil {
			return err
		}
		servers = append(servers, d)
	}
	if err := c.awaitListed(ctx, node, began, servers); err != nil {
		return err
	}
	c.setHalted(node, false)
	return c.awaitState(ctx, c.checkBalanced)
}

// queryVersion returns the version of a node's RegionServer. On the first node, the version is that of the master
// if they differ.
func (c *cluster) queryVersion(ctx context.Context, node host.Host) (string, error) {
	s, err := c.admin.queryState(ctx)
	if err != nil {
		return "", err
	}
	versions, err := c.admin.query(ctx, "versions", serverOn(s.live, node.Addr()))
	if err != nil {
		return "", err
	}
	if len(versions) != 2 {
		return "", fmt.Errorf("asking hbase for versions: %w: %q", errProtocol, versions)
	}
	own, master := versions[0], versions[1]
	if node.Name() == c.firstNode().Name() && master != c.Installation(node.Name()).Version {
		return master, nil
	}
	return own, nil
}
