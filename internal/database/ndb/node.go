package ndb

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"skerry/internal/database/daemon"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/host"
)

// launchData starts a data node; it does not wait until it serves. It runs without the
// process that otherwise watches over it and would outlive it. The end of one that is on
// trial is no failure of the cluster's until it stays.
func (c *cluster) launchData(ctx context.Context, m member, trial bool, args ...string) (*daemon.Daemon, error) {
	if err := mysql.GiveToServerUser(ctx, m.Host, m.Dir); err != nil {
		return nil, err
	}
	d, err := c.Servers.Start(ctx, m.Host, daemon.Spec{
		Command: mysql.AsServerUser(host.Command{
			Name: "ndbmtd", Path: c.Env.Installation.Programs["ndbmtd"], Env: c.Env.Installation.Env, Dir: m.dataDir(), Log: filepath.Join(m.Dir, "ndbmtd.log"),
			Args: append([]string{"--no-defaults", "--foreground", "--ndb-connectstring=" + c.managerAddr(), fmt.Sprintf("--ndb-nodeid=%d", m.id)}, args...),
		}),
		Ports: []int{dataPort}, Grace: mysql.StopGrace, Joining: trial,
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.data[m.Server] = d
	c.mu.Unlock()
	return d, nil
}

// reviveData starts a data node on trial and waits until it has started. It need not be in a
// node group.
func (c *cluster) reviveData(ctx context.Context, m member, args ...string) (*daemon.Daemon, error) {
	d, err := c.launchData(ctx, m, true, args...)
	if err != nil {
		return nil, err
	}
	return d, d.Await(ctx, startTimeout, func(ctx context.Context) error {
		peers, err := c.queryPeers(ctx)
		if err == nil && !peers[m.id].started() {
			err = fmt.Errorf("the data node on %s has not started", m.Host.Name())
		}
		return err
	})
}

// launchSQL starts a SQL node and waits until it answers.
func (c *cluster) launchSQL(ctx context.Context, m member) error {
	d, err := c.startSQL(ctx, m)
	if err != nil {
		return err
	}
	return awaitAnswer(ctx, m, d)
}

// reviveSQL is launchSQL for one that is on trial.
func (c *cluster) reviveSQL(ctx context.Context, m member) error {
	d, err := c.startSQL(ctx, m)
	if err != nil {
		return err
	}
	m.MarkLeaving()
	return awaitAnswer(ctx, m, d)
}

func (c *cluster) startSQL(ctx context.Context, m member) (*daemon.Daemon, error) {
	return m.Start(ctx, &c.Servers, host.Command{
		Name: "mysqld", Path: c.Env.Installation.Programs["mysqld"], Env: c.Env.Installation.Env, Args: []string{"--defaults-file=" + m.ConfigFile()},
	})
}

// awaitAnswer waits until a SQL node answers.
func awaitAnswer(ctx context.Context, m member, d *daemon.Daemon) error {
	return d.Await(ctx, upTimeout, func(ctx context.Context) error {
		_, err := m.Query(ctx, "SELECT 1")
		return err
	})
}

// awaitData waits until data nodes have started and are in node groups. Its error quotes the
// log of one that has not: data nodes wait for each other, so rather of one that nobody has
// heard of.
func (c *cluster) awaitData(ctx context.Context, members []member) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not started after %v", startTimeout))
	defer cancel()
	late := members
	err := c.Servers.Await(ctx, func(ctx context.Context) error {
		peers, err := c.queryPeers(ctx)
		if err != nil {
			return err
		}
		late = slices.DeleteFunc(slices.Clone(members), func(m member) bool {
			p := peers[m.id]
			return p.started() && p.group >= 0
		})
		if len(late) == 0 {
			return nil
		}
		if i := slices.IndexFunc(late, func(m member) bool { return !peers[m.id].connected }); i > 0 {
			late[0], late[i] = late[i], late[0]
		}
		return fmt.Errorf("%d data nodes have not started", len(late))
	})
	if err == nil || len(late) == 0 || c.Servers.Err() != nil {
		return err
	}
	c.mu.Lock()
	d := c.data[late[0].Server]
	c.mu.Unlock()
	return fmt.Errorf("the data node on %s: %w%s", late[0].Host.Name(), err, d.LastLines())
}
