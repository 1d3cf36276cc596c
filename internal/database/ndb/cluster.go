package ndb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/host"
)

const (
	// upTimeout bounds the start of a server: a SQL node waits up to 120 s for data nodes.
	upTimeout = 3 * time.Minute
	// startTimeout bounds the start of data nodes, which read their data or copy it.
	startTimeout = 5 * time.Minute
)

type cluster struct {
	*mysql.Cluster // the SQL nodes
	options        options
	manager        host.Host // where the management node runs
	template       *mysql.Template

	mu         sync.Mutex
	ids        map[*mysql.Server]int // of data nodes
	last       int                   // the last one given
	data       map[*mysql.Server]*daemon.Daemon
	management *daemon.Daemon
}

var _ database.Cluster = (*cluster)(nil)

func (n *NDB) Start(ctx context.Context, env database.Env) (database.Cluster, error) {
	o, err := parseOptions(len(env.Nodes), env.Options)
	if err != nil {
		return nil, err
	}
	o.deadlock = o.deadlockTimeout(env.RTT)
	c := &cluster{Cluster: mysql.NewCluster(env, Name), options: o, manager: env.Nodes[0],
		ids: make(map[*mysql.Server]int), data: make(map[*mysql.Server]*daemon.Daemon)}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Kill(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context) error {
	c.ReportProgress("preparing %d SQL nodes", len(c.Env.Nodes))
	if err := daemon.PortsFree(ctx, c.manager, "ndb_mgmd", managePort); err != nil {
		return err
	}
	var err error
	settings := installSettings(ctx, c.manager.Files(), c.Env.Installation)
	if c.template, err = mysql.InitializeTemplate(ctx, c.manager, Name, c.Env.Installation, settings, mysql.Grant); err != nil {
		return err
	}
	for _, h := range c.Env.Nodes {
		if _, err := c.addMember(ctx, h); err != nil {
			return err
		}
	}
	if err := c.manager.Files().Remove(ctx, manageDir(c.manager)); err != nil {
		return fmt.Errorf("emptying the directory of the management node: %w", err)
	}
	c.ReportProgress("starting the management node and %d data nodes", len(c.Env.Nodes))
	if err := c.startManager(ctx, true); err != nil {
		return err
	}
	members := c.members()
	if err := daemon.ForEach(ctx, members, func(ctx context.Context, _ int, m member) error {
		_, err := c.launchData(ctx, m, false, "--initial")
		return err
	}); err != nil {
		return err
	}
	if err := c.awaitData(ctx, members); err != nil {
		return err
	}
	c.ReportProgress("starting %d SQL nodes", len(members))
	if err := daemon.ForEach(ctx, members, func(ctx context.Context, _ int, m member) error { return c.launchSQL(ctx, m) }); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %v", startTimeout))
	defer cancel()
	return c.Servers.Await(ctx, c.Ready)
}

// addMember makes a node a member with a new identifier and empty directories.
func (c *cluster) addMember(ctx context.Context, h host.Host) (member, error) {
	s, err := mysql.NewServer(h, Name, c.options.port)
	if err != nil {
		return member{}, err
	}
	if err := s.Fill(ctx, c.template, dataPort); err != nil {
		return member{}, errors.Join(err, s.Close())
	}
	c.mu.Lock()
	c.last++
	m := member{s, c.last}
	c.ids[s] = m.id
	c.mu.Unlock()
	c.Add(s)
	if err := h.Files().MakeDir(ctx, m.dataDir()); err != nil {
		return m, fmt.Errorf("creating the directory of the data node on %s: %w", h.Name(), err)
	}
	settings := c.options.settings(m, installSettings(ctx, h.Files(), c.Env.Installation), c.managerAddr())
	return m, settings.Write(ctx, h.Files(), s.ConfigFile(), "mysqld")
}

func (c *cluster) members() []member {
	servers := c.All()
	c.mu.Lock()
	defer c.mu.Unlock()
	var members []member
	for _, s := range servers {
		members = append(members, member{s, c.ids[s]})
	}
	return members
}

func (c *cluster) Properties() map[string]string {
	return map[string]string{mysql.PropHosts: c.Addrs(), mysql.PropMember: c.options.member}
}

// Stop implements database.Cluster: SQL nodes and data nodes at the same time.
func (c *cluster) Stop(ctx context.Context) error { return c.Kill(ctx) }

// Kill kills the data nodes, which would wait for each other, before the rest ends.
func (c *cluster) Kill(ctx context.Context) error {
	var errs []error
	c.mu.Lock()
	daemons := []*daemon.Daemon{c.management}
	for _, d := range c.data {
		daemons = append(daemons, d)
	}
	c.mu.Unlock()
	for _, d := range slices.DeleteFunc(daemons, func(d *daemon.Daemon) bool { return d == nil }) {
		errs = append(errs, d.Kill())
	}
	return errors.Join(append(errs, c.Cluster.Kill(ctx))...)
}
