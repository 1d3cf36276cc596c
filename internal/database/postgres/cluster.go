package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
)

const readyTimeout = 60 * time.Second

type cluster struct {
	*daemon.Cluster[*member]
	options options
	primary atomic.Pointer[member]
}

var (
	_ database.Cluster    = (*cluster)(nil)
	_ database.Replicated = (*cluster)(nil)
)

// Start implements database.Database: the primary first, then its clones, concurrently.
func (d *Postgres) Start(ctx context.Context, env database.Env) (database.Cluster, error) {
	return d.StartWith(ctx, env, Extension{})
}

// Extension is what a cluster needs for an extension.
type Extension struct {
	Config []string // lines of postgresql.conf
	SQL    string   // run once on the primary
}

// StartWith starts a cluster with an extension.
func (d *Postgres) StartWith(ctx context.Context, env database.Env, e Extension) (database.Cluster, error) {
	o, err := parseOptions(env.Options)
	if err != nil {
		return nil, err
	}
	o.config = append(o.config, e.Config...)
	if env.Nodes, err = database.OrderFirst(env.Nodes, "primary", o.primary); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOption, err)
	}
	c := &cluster{Cluster: daemon.NewCluster[*member](Name, env), options: o}
	if err := c.start(ctx, e.SQL); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context, extension string) error {
	c.ReportProgress("starting the primary on %s", c.Env.Nodes[0].Name())
	first := newMember(c.Env.Nodes[0], c.options)
	c.Add(first)
	c.primary.Store(first)
	if err := c.initialise(ctx, first); err != nil {
		return err
	}
	if len(c.Env.Nodes) > 1 {
		c.ReportProgress("cloning %d standbys", len(c.Env.Nodes)-1)
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, h := range c.Env.Nodes[1:] {
		m := newMember(h, c.options)
		c.Add(m)
		g.Go(func() error {
			if err := c.createSlot(gctx, first, m); err != nil {
				return err
			}
			if err := c.clone(gctx, m, first); err != nil {
				return err
			}
			return c.run(gctx, m, false)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	// The table is created last: with synchronous standbys nothing is committed before they stream.
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("postgres is not ready after %v", readyTimeout))
	defer cancel()
	if err := c.Servers.Await(ctx, c.Ready); err != nil {
		return err
	}
	return first.withConn(ctx, func(ctx context.Context, conn *pgconn.PgConn) error {
		if _, err := rows(ctx, conn, extension); err != nil {
			return fmt.Errorf("creating the extension: %w", err)
		}
		return ensureTable(ctx, conn, defaultTable, defaultPrefix, defaultFields)
	})
}

func (c *cluster) initialise(ctx context.Context, m *member) error {
	if err := m.prepare(ctx); err != nil {
		return err
	}
	// Locale C: scans follow the order of bytes. No sync: data need not outlive the machine.
	if err := c.tool(ctx, m, "initdb", "-D", m.data(), "-U", user, "-A", "trust",
		"-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"); err != nil {
		return err
	}
	if err := m.configure(ctx, c.options, nil); err != nil {
		return err
	}
	return c.run(ctx, m, false)
}

func (c *cluster) current() (members []*member, primary *member) {
	return c.All(), c.primary.Load()
}

func (c *cluster) Properties() map[string]string {
	var hosts []string
	members := c.All()
	for _, m := range members {
		hosts = append(hosts, m.addr)
	}
	return map[string]string{PropHosts: strings.Join(hosts, ","), PropRead: c.options.read}
}

// Stop implements database.Cluster. Data is not flushed, because it is removed with the lab.
func (c *cluster) Stop(ctx context.Context) error {
	members := c.All()
	errs := make([]error, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() { errs[i] = m.quitNow(ctx) })
	}
	all.Wait()
	return errors.Join(append(errs, c.Servers.Stop(ctx))...)
}
