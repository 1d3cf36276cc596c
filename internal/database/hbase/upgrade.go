package hbase

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/files"
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
// if they differ. The master does not tell the versions of RegionServers: they are read from their logs.
func (c *cluster) queryVersion(ctx context.Context, node host.Host) (string, error) {
	if node.Name() == c.firstNode().Name() {
		master, err := c.admin.query(ctx, "version")
		if err == nil && len(master) != 1 {
			err = fmt.Errorf("querying hbase for version: %w: %q", errProtocol, master)
		}
		if err != nil || master[0] != c.Installation(node.Name()).Version {
			return strings.Join(master, " "), err
		}
	}
	log, err := files.Read(ctx, node.Files(), filepath.Join(c.site(node).dir, regionServer.name+".log"))
	if err != nil {
		return "", fmt.Errorf("reading the version of the RegionServer on %s: %w", node.Name(), err)
	}
	versions := loggedVersion.FindAllStringSubmatch(log, -1)
	if len(versions) == 0 {
		return "", fmt.Errorf("the log of the RegionServer on %s has no version", node.Name())
	}
	return versions[len(versions)-1][1], nil
}

// loggedVersion matches what a server of HBase logs when it starts: "INFO VersionInfo HBase 2.6.4-hadoop3".
var loggedVersion = regexp.MustCompile(`VersionInfo HBase (\S+)`)
