package groupreplication

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/database/mysql"
)

const (
	// upTimeout bounds the time until a server answers.
	upTimeout = time.Minute
	// formTimeout bounds the formation of a group.
	formTimeout = 3 * time.Minute
	// joinTimeout bounds a join: the member may have to receive all data.
	joinTimeout = 10 * time.Minute
)

type cluster struct {
	*mysql.GroupCluster
	options  options
	install  mysql.Settings // of the installation
	template *mysql.Template
	ids      atomic.Int32 // of servers, the last one given
}

var (
	_ database.Cluster    = (*cluster)(nil)
	_ database.Replicated = (*cluster)(nil)
	_ mysql.Group         = (*cluster)(nil)
)

func (d *GroupReplication) Start(ctx context.Context, env database.Env) (database.Cluster, error) {
	o, err := parseOptions(len(env.Nodes), env.Options)
	if err != nil {
		return nil, err
	}
	if env.Nodes, err = database.OrderFirst(env.Nodes, "primary", o.primary); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOption, err)
	}
	f, err := o.installSettings(ctx, env.Nodes[0].Files(), env.Installation)
	if err != nil {
		return nil, err
	}
	c := &cluster{GroupCluster: mysql.NewGroupCluster(env, &d.Driver, "group_replication_consistency='EVENTUAL'"), options: o, install: f}
	c.SetGroup(c)
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Kill(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context) error {
	c.ReportProgress("preparing the data of %d members", len(c.Env.Nodes))
	// The statements are no transactions of the group's history.
	grant := "SET SQL_LOG_BIN = 0;\n" + mysql.Grant
	var err error
	if c.template, err = mysql.InitializeTemplate(ctx, c.Env.Nodes[0], Name, c.Env.Installation, c.install, grant); err != nil {
		return err
	}
	for _, h := range c.Env.Nodes {
		s, err := mysql.NewServer(h, Name, c.options.port)
		if err != nil {
			return err
		}
		c.Add(s)
	}
	servers := c.All()
	err = daemon.ForEach(ctx, servers, func(ctx context.Context, _ int, s *mysql.Server) error {
		if err := c.fill(ctx, s); err != nil {
			return err
		}
		return c.launch(ctx, s)
	})
	if err != nil {
		return err
	}
	c.ReportProgress("forming the group")
	ctx, cancel := context.WithTimeoutCause(ctx, formTimeout, fmt.Errorf("not formed after %v", formTimeout))
	defer cancel()
	for i, s := range servers {
		if err := c.startReplication(ctx, s, i == 0); err != nil {
			return fmt.Errorf("forming the group: %w%s", err, s.LastLines())
		}
	}
	if err := c.Servers.Await(ctx, c.Ready); err != nil {
		return fmt.Errorf("forming the group: %w", err)
	}
	return nil
}

func (c *cluster) fill(ctx context.Context, s *mysql.Server) error {
	if err := s.Fill(ctx, c.template, groupPort); err != nil {
		return err
	}
	return c.options.settings(s.Host, c.install, int(c.ids.Add(1)), c.seeds()).Write(ctx, s.Host.Files(), s.ConfigFile(), "mysqld")
}

func (c *cluster) seeds() []string {
	var seeds []string
	for _, s := range c.All() {
		seeds = append(seeds, groupAddr(s))
	}
	return seeds
}

func groupAddr(s *mysql.Server) string { return fmt.Sprintf("%s:%d", s.Host.Addr(), groupPort) }

// launch starts a member's process and waits until it answers. It is in no group then.
func (c *cluster) launch(ctx context.Context, s *mysql.Server) error {
	d, err := s.StartMySQL(ctx, &c.Servers, c.Env.Installation, groupPort)
	if err != nil {
		return err
	}
	return s.AwaitAnswer(ctx, d, upTimeout)
}

// startReplication adds a running server to the group, or to a new one, and returns when the group counts it.
func (c *cluster) startReplication(ctx context.Context, s *mysql.Server, first bool) error {
	statements := []string{"SET GLOBAL group_replication_group_seeds = '" + strings.Join(c.seeds(), ",") + "'"}
	start := "START GROUP_REPLICATION USER = '" + mysql.User + "'"
	if first {
		statements = append(statements, "SET GLOBAL group_replication_bootstrap_group = ON", start,
			"SET GLOBAL group_replication_bootstrap_group = OFF")
	} else {
		statements = append(statements, start)
	}
	for _, text := range statements {
		if err := s.Exec(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// Stop implements database.Cluster with SIGKILL: members that leave at the same time wait for each other.
func (c *cluster) Stop(ctx context.Context) error { return c.Kill(ctx) }

func (c *cluster) Properties() map[string]string {
	return map[string]string{mysql.PropHosts: c.Addrs(), mysql.PropMember: c.options.member, mysql.PropReads: c.options.reads}
}
