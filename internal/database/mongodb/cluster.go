package mongodb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

// formTimeout bounds the forming of a set. An election takes 10 s by default.
const formTimeout = 2 * time.Minute

type cluster struct {
	*daemon.Cluster[*server]
	options options

	mu     sync.Mutex // of the fields below
	shards int        // number of shards ever created, for their names
	// named holds the names of present and past shards of one member, by address. A new
	// shard at an address reuses its old name: MongoDB 4.2 aborts if it knows the address
	// from another set ("Invariant failure !groupAndId.groupData").
	named map[string]string
}

var (
	_ database.Cluster    = (*cluster)(nil)
	_ database.Replicated = (*cluster)(nil)
)

func (d *MongoDB) Start(ctx context.Context, env database.Env) (database.Cluster, error) {
	o, err := parseOptions(len(env.Nodes), env.Options)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, h := range env.Nodes {
		names = append(names, h.Name())
	}
	if err := o.checkNames(names); err != nil {
		return nil, err
	}
	c := &cluster{Cluster: daemon.NewCluster[*server](Name, env), options: o, shards: o.shards, named: make(map[string]string)}
	if err := c.start(ctx, o.planProcesses(names)); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (o options) checkNames(nodes []string) error {
	named := slices.Concat(o.mongos, o.hidden, o.nonVoting)
	for n := range o.priorities {
		named = append(named, n)
	}
	for _, n := range named {
		if !slices.Contains(nodes, n) {
			return fmt.Errorf("%w: unknown data node %s, want one of %s", ErrOption, n, strings.Join(nodes, ", "))
		}
	}
	return nil
}

func (c *cluster) start(ctx context.Context, plan []process) error {
	c.ReportProgress("starting %d servers", len(plan))
	for _, p := range plan {
		if _, err := c.addServer(c.Env.Nodes[p.node], p); err != nil {
			return err
		}
	}
	if err := c.launchAll(ctx, c.Select(func(s *server) bool { return s.role != roleRouter })); err != nil {
		return err
	}
	c.ReportProgress("forming %s", strings.Join(c.setNames(), ", "))
	if err := daemon.ForEach(ctx, c.setNames(), func(ctx context.Context, _ int, set string) error { return c.formSet(ctx, set) }); err != nil {
		return err
	}
	if c.options.sharded {
		if err := c.formShards(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, formTimeout, fmt.Errorf("mongodb is not ready after %v", formTimeout))
	defer cancel()
	return c.Servers.Await(ctx, c.Ready)
}

// launchAll starts servers with empty folders concurrently. A failure cancels the others; a timeout returns all errors.
func (c *cluster) launchAll(ctx context.Context, servers []*server) error {
	errs := make([]error, len(servers))
	g, gctx := errgroup.WithContext(ctx)
	for i, s := range servers {
		g.Go(func() error {
			if errs[i] = s.prepare(ctx); errs[i] == nil {
				errs[i] = c.launch(gctx, s, false)
			}
			return errs[i]
		})
	}
	err := g.Wait()
	if err != nil && ctx.Err() != nil {
		return errors.Join(errs...)
	}
	return err
}

func (c *cluster) formSet(ctx context.Context, set string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, formTimeout, fmt.Errorf("%s is not formed after %v", set, formTimeout))
	defer cancel()
	members := c.serversInSet(set)
	if err := initiateSet(ctx, members[0].admin, c.initialConfig(set)); err != nil {
		return fmt.Errorf("forming %s: %w", set, err)
	}
	if err := c.Servers.Await(ctx, func(ctx context.Context) error { return c.checkSet(ctx, set) }); err != nil {
		return fmt.Errorf("forming %s: %w", set, err)
	}
	return nil
}

func (c *cluster) initialConfig(set string) setConfig {
	config := setConfig{Name: set, Version: 1, Server: set == configName, Settings: bson.M{}}
	for i, s := range c.serversInSet(set) {
		m := memberConfig{ID: i, Host: s.addr, Priority: 1, Votes: 1}
		if s.role == roleMember {
			m = c.options.newMemberConfig(i, s.host.Name(), s.addr)
		} else if s.role == roleShard && i == 0 && c.options.replicas > 1 {
			m.Priority = 2 // spreads primaries over the nodes
		}
		if i >= maxVoters {
			m.Votes, m.Priority = 0, 0
		}
		config.Members = append(config.Members, m)
	}
	if d := c.options.election; d > 0 {
		config.Settings["electionTimeoutMillis"] = d.Milliseconds()
	}
	if d := c.options.heartbeat; d > 0 {
		config.Settings["heartbeatIntervalMillis"] = d.Milliseconds()
	}
	return config
}

func (o options) newMemberConfig(id int, node, addr string) memberConfig {
	m := memberConfig{ID: id, Host: addr, Priority: 1, Votes: 1}
	if p, ok := o.priorities[node]; ok {
		m.Priority = p
	}
	if slices.Contains(o.hidden, node) {
		m.Hidden, m.Priority = true, 0
	}
	if slices.Contains(o.nonVoting, node) {
		m.Votes, m.Priority = 0, 0
	}
	return m
}

func (c *cluster) formShards(ctx context.Context) error {
	c.ReportProgress("joining %d shards", c.options.shards)
	routers := c.Select(func(s *server) bool { return s.role == roleRouter })
	if err := c.launchAll(ctx, routers); err != nil {
		return err
	}
	for _, set := range c.setNames() {
		if set == configName {
			continue
		}
		if err := addShard(ctx, routers[0].admin, set, c.setHosts(set)); err != nil {
			return err
		}
	}
	return shardCollection(ctx, routers[0].admin)
}

func (c *cluster) addServer(h host.Host, p process) (*server, error) {
	s, err := newServer(h, p)
	if err != nil {
		return nil, err
	}
	c.Add(s)
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.role == roleShard {
		c.named[s.addr] = s.set
	}
	return s, nil
}

func (c *cluster) shardNameAt(addr string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if set := c.named[addr]; set != "" {
		return set
	}
	c.shards++
	return shardName(c.shards - 1)
}

func (c *cluster) dropServers(servers []*server) error {
	var errs []error
	for _, s := range servers {
		c.Drop(s)
		errs = append(errs, disconnect(s.admin))
	}
	return errors.Join(errs...)
}

func (c *cluster) serversInSet(set string) []*server {
	return c.Select(func(s *server) bool { return s.set == set })
}

func (c *cluster) setHosts(set string) []string {
	var hosts []string
	for _, s := range c.serversInSet(set) {
		hosts = append(hosts, s.addr)
	}
	return hosts
}

func (c *cluster) setNames() []string {
	var sets []string
	for _, s := range c.Select(func(s *server) bool { return s.set != "" }) {
		if !slices.Contains(sets, s.set) {
			sets = append(sets, s.set)
		}
	}
	return sets
}

func (c *cluster) Properties() map[string]string {
	entry := roleMember
	q := url.Values{"readPreference": {c.options.preference}}
	if c.options.sharded {
		entry = roleRouter
	} else {
		q.Set("replicaSet", setName)
	}
	if c.options.write != "" {
		q.Set("w", c.options.write)
	}
	if c.options.read != "" {
		q.Set("readConcernLevel", c.options.read)
	}
	var hosts []string
	for _, s := range c.Select(func(s *server) bool { return s.role == entry }) {
		hosts = append(hosts, s.addr)
	}
	contacts := strings.Join(c.Env.Contacts(c.options.port, hosts), ",")
	return map[string]string{PropURL: "mongodb://" + contacts + "/" + databaseName + "?" + q.Encode()}
}

// Stop implements database.Cluster with SIGKILL: a graceful stop takes up to 15 s, and the data is not needed.
func (c *cluster) Stop(ctx context.Context) error {
	servers := c.Select(func(*server) bool { return true })
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() { errs[i] = s.Halt(ctx, database.Abrupt) })
	}
	all.Wait()
	return errors.Join(append(errs, c.Servers.Stop(ctx), c.dropServers(servers))...)
}
