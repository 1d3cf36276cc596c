package hydra

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"skerry/internal/database"
	"skerry/internal/database/galera"
	"skerry/internal/database/mysql"
	"skerry/internal/database/postgres"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// Backends: what a cloud keeps its rows in.
const (
	backendSQLite   = "sqlite"
	backendPostgres = "postgres"
	backendMariaDB  = "mariadb"
)

type server struct {
	new     func() database.Database
	options database.Options
	// url is the address that a member uses, derived from the properties for clients.
	url func(properties map[string]string) string
}

var servers = map[string]server{
	backendPostgres: { // its database postgres has the laboratory's own usertable, whose columns are not Hydra's
		new: func() database.Database { return postgres.New() },
		url: func(p map[string]string) string {
			return "postgres://postgres@" + p[postgres.PropHosts] + "/template1?sslmode=disable"
		},
	},
	backendMariaDB: { // one that is no cluster writes each commit to its disk, as PostgreSQL and SQLite do
		new: func() database.Database { return galera.New() }, options: database.Options{"innodb_flush_log_at_trx_commit": 1},
		url: func(p map[string]string) string {
			return "mysql://" + mysql.User + "@" + p[mysql.PropHosts] + "/" + mysql.Schema
		},
	},
}

// store is the database of a cloud, on the node of its first member, which it outlives.
type store struct {
	mu  sync.Mutex
	url string // "" until there is one
	// running is the server behind it, nil with SQLite.
	running database.Cluster
}

func (c *cluster) cloudStore(cloud string) *store {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stores[cloud] == nil {
		c.stores[cloud] = &store{}
	}
	return c.stores[cloud]
}

// ensureDatabase returns the URL of the database of a member's cloud, and creates it if needed.
func (c *cluster) ensureDatabase(ctx context.Context, m *member) (string, error) {
	s := c.cloudStore(m.cloud)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.url != "" {
		return s.url, nil
	}
	var err error
	if of, ok := servers[c.options.backend]; ok {
		if err = s.startServer(ctx, c.Env, m.host, of); err == nil {
			c.watchServer(m.cloud, s.running)
		}
	} else {
		err = s.createFile(ctx, m.host, m.cloud)
	}
	if err != nil {
		return "", fmt.Errorf("the database of cloud %s: %w", m.cloud, err)
	}
	return s.url, nil
}

func (s *store) createFile(ctx context.Context, on host.Host, cloud string) error {
	dir := filepath.Join(on.Dir(), "hydra-"+cloud)
	if err := files.Empty(ctx, on.Files(), dir); err != nil {
		return fmt.Errorf("emptying its directory: %w", err)
	}
	s.url = "sqlite:" + filepath.Join(dir, "hydra.db")
	return nil
}

func (s *store) startServer(ctx context.Context, env database.Env, on host.Host, of server) error {
	db := of.new()
	in, err := db.Find("", "")
	if err != nil {
		return err
	}
	env.Nodes, env.Installation, env.Options, env.Contact = []host.Host{on}, in, of.options, nil
	if s.running, err = db.Start(ctx, env); err != nil {
		return err
	}
	s.url = of.url(s.running.Properties())
	return nil
}

// watchServer fails the cluster when a cloud's server exits unexpectedly.
func (c *cluster) watchServer(cloud string, running database.Cluster) {
	c.watchers.Go(func() {
		select {
		case <-running.Failed():
			c.Servers.Fail(fmt.Errorf("the database of cloud %s: %w", cloud, running.Err()))
		case <-c.stopping:
		}
	})
}

func (c *cluster) runningServers() (all []database.Cluster) {
	c.mu.Lock()
	stores := slices.Collect(maps.Values(c.stores))
	c.mu.Unlock()
	for _, s := range stores {
		s.mu.Lock()
		if s.running != nil {
			all = append(all, s.running)
		}
		s.mu.Unlock()
	}
	return all
}

func (c *cluster) stopStores(ctx context.Context) error {
	c.stop()
	c.watchers.Wait()
	var errs []error
	for _, r := range c.runningServers() {
		errs = append(errs, r.Stop(ctx))
	}
	return errors.Join(errs...)
}

// Logs implements database.Cluster: those of members, and of the clouds' servers.
func (c *cluster) Logs() map[string]files.File {
	logs := c.Servers.Logs()
	for _, r := range c.runningServers() {
		maps.Copy(logs, r.Logs())
	}
	return logs
}

func backendNames() []string { return []string{backendSQLite, backendPostgres, backendMariaDB} }
