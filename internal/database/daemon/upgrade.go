package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

// errOldVersion means that a server reports another version than its installation has.
var errOldVersion = errors.New("the server reports another version")

// installations are those of members after the first upgrade.
type installations struct {
	mu     sync.Mutex
	byNode map[string]database.Installation
	latest database.Installation
}

// Installation returns what the member on a node runs. A node that joins after an upgrade runs the
// latest one, since a cluster may refuse older servers then.
func (c *Cluster[M]) Installation(node string) database.Installation {
	in := &c.installed
	in.mu.Lock()
	defer in.mu.Unlock()
	if own, ok := in.byNode[node]; ok {
		return own
	}
	if in.byNode == nil {
		return c.Env.Installation
	}
	return in.latest
}

func (c *Cluster[M]) setInstallation(node string, to database.Installation) {
	in := &c.installed
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.byNode == nil {
		in.byNode = map[string]database.Installation{}
		for _, m := range c.All() {
			in.byNode[m.Name()] = c.Env.Installation
		}
	}
	in.byNode[node], in.latest = to, to
}

// UpgradeOrder implements database.UpgradableCluster: the given order.
func (c *Cluster[M]) UpgradeOrder(_ context.Context, nodes []string) ([]string, error) {
	return nodes, nil
}

// RunUpgrade implements database.UpgradableCluster's Upgrade. Cluster is c with the Halt and Revive
// of its database, which start the programs of Installation. Yield makes others take over before the
// member ends; it is nil if Halt does so. Version returns the version that the member reports.
//
// A member that does not start with the new programs is not started with the old ones: the new
// programs may have changed its data.
func (c *Cluster[M]) RunUpgrade(ctx context.Context, cluster database.Cluster, node host.Host, to database.Installation,
	yield func(ctx context.Context, m M) error, version func(ctx context.Context, m M) (string, error),
) (database.Change, error) {
	timer := &ChangeTimer{began: time.Now()}
	run := func(m M) error {
		if yield != nil {
			if err := yield(ctx, m); err != nil {
				return err
			}
		}
		if err := cluster.Halt(ctx, node, database.Graceful); err != nil {
			return err
		}
		timer.Accept()
		c.setInstallation(node.Name(), to)
		if err := cluster.Revive(ctx, node); err != nil {
			return err
		}
		v, err := version(ctx, m)
		if err == nil && v != to.Version {
			err = fmt.Errorf("%w: %s", errOldVersion, v)
		}
		return err
	}
	c.ReportProgress("upgrading %s from %s to %s", node.Name(), c.Installation(node.Name()).Version, to.Version)
	err := database.ErrNotMember
	if m := c.On(node.Name()); m != *new(M) {
		err = run(m)
	}
	if err != nil {
		return timer.change, fmt.Errorf("upgrading %s to %s %s: %w", node.Name(), to.Database, to.Version, err)
	}
	timer.Complete()
	return timer.change, nil
}
