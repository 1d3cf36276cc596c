package ferretdb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/database/mongodb"
	"skerry/internal/database/postgres"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

const (
	startTimeout = 30 * time.Second
	stopGrace    = 5 * time.Second
)

type cluster struct {
	*daemon.Cluster[host.Host]
	daemon.Seat
	options options
	node    host.Host
	addr    string
	admin   *mongodb.Admin
	// backend is the PostgreSQL that stores the data, nil before it has started.
	backend database.Cluster
}

var _ database.Cluster = (*cluster)(nil)

func (d *FerretDB) Start(ctx context.Context, env database.Env) (database.Cluster, error) {
	o, err := parseOptions(env.Options)
	if err != nil {
		return nil, err
	}
	c := &cluster{Cluster: daemon.NewCluster[host.Host](Name, env), options: o, node: env.Nodes[0]}
	c.addr = net.JoinHostPort(c.node.Addr(), strconv.Itoa(o.port))
	c.Add(c.node)
	if c.admin, err = mongodb.NewAdmin(c.node, c.addr); err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) dir() string { return filepath.Join(c.node.Dir(), Name) }

func (c *cluster) start(ctx context.Context) error {
	if err := files.Empty(ctx, c.node.Files(), c.dir()); err != nil {
		return fmt.Errorf("emptying the directory of ferretdb: %w", err)
	}
	if err := c.node.Files().MakeDir(ctx, filepath.Join(c.dir(), "data")); err != nil {
		return fmt.Errorf("creating the directory of ferretdb: %w", err)
	}
	c.ReportProgress("starting ferretdb on %s", c.node.Name())
	if err := c.startBackend(ctx); err != nil {
		return err
	}
	if err := c.launch(ctx); err != nil {
		return err
	}
	return ctx.Err() // a fast start may not have checked the context
}

// documentDB is the extension with the settings that FerretDB's documentation asks for. Its background jobs connect as
// clients, and the server does not listen on localhost, which is their default.
func (c *cluster) documentDB() postgres.Extension {
	return postgres.Extension{SQL: "CREATE EXTENSION documentdb CASCADE", Config: []string{
		"shared_preload_libraries = 'pg_cron,pg_documentdb_core,pg_documentdb'",
		"cron.database_name = 'postgres'",
		"cron.host = '" + c.node.Addr() + "'",
		"documentdb.localhost_connection_string = 'host=" + c.node.Addr() + "'",
	}}
}

// startBackend starts the PostgreSQL that stores the data.
func (c *cluster) startBackend(ctx context.Context) (err error) {
	env := c.Env
	env.Nodes, env.Options = env.Nodes[:1], nil
	if c.backend, err = postgres.New().StartWith(ctx, env, c.documentDB()); err != nil {
		return fmt.Errorf("starting the backend of ferretdb: %w", err)
	}
	return nil
}

// arguments are those of the process.
func (c *cluster) arguments() []string {
	return []string{
		"--listen-addr=" + c.addr, "--postgresql-url=postgres://postgres@" + c.backend.Properties()[postgres.PropHosts] + "/postgres",
		"--state-dir=" + filepath.Join(c.dir(), "data"), "--no-auth", "--telemetry=disable", "--debug-addr=-", "--log-level=warn",
	}
}

// launch starts the process and waits until it answers.
func (c *cluster) launch(ctx context.Context) error {
	d, err := c.Servers.Start(ctx, c.node, daemon.Spec{
		Command: host.Command{
			Name: Name, Path: c.Env.Installation.Programs[Name], Args: c.arguments(), Env: c.Env.Installation.Env,
			Dir: c.dir(), Log: filepath.Join(c.dir(), "ferretdb.log"),
		},
		Ports: []int{c.options.port}, Grace: stopGrace,
	})
	if err != nil {
		return err
	}
	c.SetServer(d)
	return d.Await(ctx, startTimeout, c.admin.Ping)
}

func (c *cluster) Properties() map[string]string {
	return map[string]string{mongodb.PropURL: "mongodb://" + c.addr + "/ycsb"}
}

func (c *cluster) Ready(ctx context.Context) error { return c.admin.Ping(ctx) }

func (c *cluster) Members(ctx context.Context) ([]database.Member, error) {
	m := database.Member{Node: c.node.Name(), State: "unreachable"}
	if n, err := c.admin.Count(ctx); err == nil {
		m.State, m.Share, m.Rows = "serving", 1, n
	}
	return []database.Member{m}, ctx.Err()
}

func (c *cluster) Count(ctx context.Context) (int64, error) { return c.admin.Count(ctx) }

func (c *cluster) Clear(ctx context.Context) error { return c.admin.Clear(ctx) }

func (c *cluster) Join(_ context.Context, node host.Host) (database.Change, error) {
	return database.Change{}, fmt.Errorf("joining %s: %w", node.Name(), database.ErrUnsupported)
}

func (c *cluster) Leave(_ context.Context, node host.Host, _ database.Manner) (database.Change, error) {
	return database.Change{}, fmt.Errorf("%s leaving: %w", node.Name(), database.ErrUnsupported)
}

func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	return c.RunHalt(ctx, node, func(ctx context.Context, _ host.Host) error {
		err := c.Seat.Halt(ctx, manner)
		if c.backend != nil {
			err = errors.Join(err, c.backend.Halt(ctx, node, manner))
		}
		return err
	})
}

func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	return c.RunRevive(ctx, node, func(ctx context.Context, _ host.Host) error {
		if c.Running() {
			return nil
		}
		if c.backend != nil {
			if err := c.backend.Revive(ctx, node); err != nil {
				return err
			}
		}
		return c.launch(ctx)
	})
}

func (c *cluster) Stop(ctx context.Context) error {
	errs := []error{c.Servers.Stop(ctx), c.admin.Close()}
	if c.backend != nil {
		errs = append(errs, c.backend.Stop(ctx))
	}
	return errors.Join(errs...)
}

func (c *cluster) Logs() map[string]files.File {
	logs := c.Servers.Logs()
	if c.backend != nil {
		for name, log := range c.backend.Logs() {
			logs[name] = log
		}
	}
	return logs
}
