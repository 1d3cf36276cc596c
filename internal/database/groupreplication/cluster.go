package groupreplication

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/database/mysql"
	"skerry/internal/load"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

const (
	// upTimeout bounds the time until a server answers.
	upTimeout = time.Minute
	// formTimeout bounds the formation of a group.
	formTimeout = 3 * time.Minute
	// joinTimeout bounds a join: the member may have to receive all data.
	joinTimeout = 10 * time.Minute
	// expelTimeout bounds the expulsion of a lost member, beyond group_replication_member_expel_timeout.
	expelTimeout = 2 * time.Minute
)

type cluster struct {
	*mysql.Cluster
	driver   *mysql.Driver
	options  options
	parts    mysql.Settings // of the installation
	template *mysql.Template
	ids      atomic.Int32 // of servers, the last one given
}

var (
	_ database.Cluster    = (*cluster)(nil)
	_ database.Replicated = (*cluster)(nil)
)

// Start implements database.Database.
func (d *GroupReplication) Start(ctx context.Context, env database.Env) (database.Cluster, error) {
	o, err := parseOptions(len(env.Nodes), env.Options)
	if err != nil {
		return nil, err
	}
	if env.Nodes, err = database.OrderFirst(env.Nodes, "primary", o.primary); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOption, err)
	}
	f, err := locate(ctx, env.Nodes[0].Files(), env.Installation)
	if err != nil {
		return nil, err
	}
	c := &cluster{Cluster: mysql.NewCluster(env, Name), driver: &d.driver, options: o, parts: f}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Kill(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context) error {
	c.ReportProgress("preparing the data of %d members", len(c.Env.Nodes))
	if err := c.prepare(ctx); err != nil {
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
	g, gctx := errgroup.WithContext(ctx)
	for _, s := range servers {
		g.Go(func() error {
			if err := c.fill(gctx, s); err != nil {
				return err
			}
			return c.launch(gctx, s)
		})
	}
	if err := g.Wait(); err != nil {
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

// prepare creates an empty data directory with the benchmark's user and schema, also for later members.
func (c *cluster) prepare(ctx context.Context) error {
	h := c.Env.Nodes[0]
	dir := filepath.Join(h.Dir(), Name+"-template")
	if err := files.Empty(ctx, h.Files(), dir); err != nil {
		return fmt.Errorf("%w: %w", mysql.ErrNoTemplate, err)
	}
	// These statements are no transactions of the group's history.
	grant, config := filepath.Join(dir, "grant.sql"), filepath.Join(dir, "my.cnf")
	if err := files.WriteText(ctx, h.Files(), grant, "SET SQL_LOG_BIN = 0;\n"+mysql.Grant); err != nil {
		return fmt.Errorf("%w: %w", mysql.ErrNoTemplate, err)
	}
	c.template = &mysql.Template{Host: h, Dir: dir, Data: filepath.Join(dir, "data")}
	s := append(append(mysql.Settings{}, c.parts...), c.options.storage()...)
	s.Add("datadir", c.template.Data)
	s.Add("init-file", grant)
	s.Add("skip-log-bin", "ON")
	if err := s.Write(ctx, h.Files(), config, "mysqld"); err != nil {
		return err
	}
	if err := mysql.GiveToServerUser(ctx, h, dir); err != nil {
		return err
	}
	_, err := mysql.Run(ctx, h, mysql.AsServerUser(host.Command{
		Name: "mysqld --initialize", Path: c.Env.Installation.Programs["mysqld"], Env: c.Env.Installation.Env, Dir: dir,
		Args: []string{"--defaults-file=" + config, "--initialize-insecure"},
	}))
	if err != nil {
		return fmt.Errorf("%w: %w", mysql.ErrNoTemplate, err)
	}
	// auto.cnf is the server's identity. Each copy needs its own.
	if err := h.Files().Remove(ctx, filepath.Join(c.template.Data, "auto.cnf")); err != nil {
		return fmt.Errorf("%w: %w", mysql.ErrNoTemplate, err)
	}
	return nil
}

func (c *cluster) fill(ctx context.Context, s *mysql.Server) error {
	if err := s.Fill(ctx, c.template, groupPort); err != nil {
		return err
	}
	return c.options.settings(s.Host, c.parts, int(c.ids.Add(1)), c.seeds()).Write(ctx, s.Host.Files(), s.ConfigFile(), "mysqld")
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
	d, err := c.startServer(ctx, s)
	if err != nil {
		return err
	}
	return awaitAnswer(ctx, s, d)
}

func (c *cluster) startServer(ctx context.Context, s *mysql.Server) (*daemon.Daemon, error) {
	return s.Start(ctx, &c.Servers, host.Command{
		Name: "mysqld", Path: c.Env.Installation.Programs["mysqld"], Env: c.Env.Installation.Env,
		Args: []string{"--defaults-file=" + s.ConfigFile()},
	}, groupPort)
}

// awaitAnswer waits until a server answers.
func awaitAnswer(ctx context.Context, s *mysql.Server, d *daemon.Daemon) error {
	return d.Await(ctx, upTimeout, func(ctx context.Context) error {
		_, err := s.Query(ctx, "SELECT 1")
		return err
	})
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

func (c *cluster) OpenMember(ctx context.Context, node string) (load.Client, error) {
	s := c.On(node)
	if s == nil {
		return nil, fmt.Errorf("reading the copy of %s: %w", node, database.ErrNotMember)
	}
	return c.driver.OpenMember(ctx, s, "group_replication_consistency='EVENTUAL'")
}
