package metadata

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
	vocab "skerry/systems/metadata"
)

// readyTimeout bounds how long new servers may take to serve.
const readyTimeout = 60 * time.Second

type cluster struct {
	*daemon.Cluster[*replica]
	options options
	layout  []server // at the beginning, that of the root first

	names atomic.Int32 // of replicas, the number given out
}

var _ database.Cluster = (*cluster)(nil)

func (*Metadata) Start(ctx context.Context, env database.Env) (database.Cluster, error) {
	o, err := parseOptions(env.Options)
	if err != nil {
		return nil, err
	}
	c := &cluster{Cluster: daemon.NewCluster[*replica](Name, env), options: o}
	if c.layout, err = o.planServers(env.Nodes); err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context) error {
	for _, s := range c.layout {
		for _, h := range s.nodes {
			c.addReplica(s, h)
		}
	}
	all := c.All()
	c.Env.ReportProgress(Name, "starting %d replicas of %d metadata servers", len(all), len(c.layout))
	if err := daemon.ForEach(ctx, all, func(ctx context.Context, _ int, r *replica) error { return c.startNew(ctx, r, false) }); err != nil {
		return err
	}
	err := daemon.ForEach(ctx, all, func(ctx context.Context, _ int, r *replica) error {
		return r.Server().Await(ctx, readyTimeout, r.checkServing)
	})
	if err != nil {
		return err
	}
	c.Env.ReportProgress(Name, "making the tree")
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("metadata is not ready after %v", readyTimeout))
	defer cancel()
	return c.Servers.Await(ctx, func(ctx context.Context) error { return errors.Join(c.createTree(ctx), c.Ready(ctx)) })
}

// Tops of the tree.
const (
	ownTop    = "/own"
	sharedTop = "/shared"
)

// areaPaths lists the directories of the initial nodes.
func (c *cluster) areaPaths() []string {
	var all []string
	for _, top := range []string{ownTop, sharedTop} {
		for _, h := range c.Env.Nodes {
			all = append(all, path.Join(top, h.Name()))
		}
	}
	return all
}

// createTree creates the initial directories. It can be repeated.
func (c *cluster) createTree(ctx context.Context) error {
	by, err := c.findServing(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := runCommand(ctx, by.admin, vocab.Command{Op: vocab.Mkdir, Path: tableDir(""), Parents: true}); err != nil {
		return fmt.Errorf("creating the table: %w", err)
	}
	for _, top := range []string{ownTop, sharedTop} {
		for _, h := range c.Env.Nodes {
			area := path.Join(top, h.Name())
			if _, err := runCommand(ctx, by.admin, vocab.Command{Op: vocab.Mkdir, Path: area, Parents: true}); err != nil {
				return fmt.Errorf("creating the areas: %w", err)
			}
			s := serverFor(c.layout, h)
			if s.name == c.layout[0].name {
				continue
			}
			_, err := runCommand(ctx, by.admin, vocab.Command{Op: vocab.Delegate, Path: area, Owner: s.name})
			if err != nil && !errors.Is(err, vocab.ErrElsewhere) { // it was delegated before
				return fmt.Errorf("delegating %s to %s: %w", area, s.name, err)
			}
		}
	}
	return nil
}

// addReplica registers a replica here, before it runs.
func (c *cluster) addReplica(s server, h host.Host) *replica {
	r := c.newReplica(s, h, len(c.AllOn(h.Name())))
	c.Add(r)
	return r
}

// dropReplica removes a replica whose process has ended.
func (c *cluster) dropReplica(r *replica) error {
	c.Drop(r)
	r.closeClients()
	return nil
}

func (c *cluster) serverAddresses(server string) string {
	var all []string
	for _, r := range c.All() {
		if r.server == server {
			all = append(all, r.addr)
		}
	}
	return strings.Join(all, ",")
}

// Properties implements database.Cluster: what stands where the client does is first.
func (c *cluster) Properties() map[string]string {
	var near, far, areas []string
	site := ""
	if c.Env.Control != nil {
		site = c.Env.Control.Site()
	}
	for _, r := range c.All() {
		if r.host.Site() == site {
			near = append(near, r.addr)
		} else {
			far = append(far, r.addr)
		}
	}
	nodes := slices.Clone(c.Env.Nodes)
	slices.SortStableFunc(nodes, func(a, b host.Host) int {
		switch {
		case a.Site() == b.Site():
			return 0
		case a.Site() == site:
			return -1
		case b.Site() == site:
			return 1
		}
		return 0
	})
	for _, h := range nodes {
		areas = append(areas, h.Name())
	}
	return map[string]string{PropAddresses: strings.Join(append(near, far...), ","), PropAreas: strings.Join(areas, ",")}
}

// Stop implements database.Cluster with SIGKILL: acknowledged changes are on disk.
func (c *cluster) Stop(context.Context) error {
	errs := []error{c.Servers.Kill()}
	for _, r := range c.All() {
		errs = append(errs, c.dropReplica(r))
	}
	return errors.Join(errs...)
}

// server is one server of the service: a process, or a group of replicas.
type server struct {
	name  string // that of the node that it belongs to
	group bool   // of replicas, be it of one
	nodes []host.Host
}

// planServers returns the servers that the options make of the nodes, the root's first.
func (o options) planServers(nodes []host.Host) ([]server, error) {
	if o.root != "" {
		at := slices.IndexFunc(nodes, func(h host.Host) bool { return h.Name() == o.root })
		if at < 0 {
			return nil, fmt.Errorf("%w: root %s is not a data node", ErrOption, o.root)
		}
		nodes = append(slices.Clone(nodes[at:]), nodes[:at]...)
	}
	some := func(nodes []host.Host, most int) []host.Host {
		if most == 0 {
			return nodes
		}
		return nodes[:min(most, len(nodes))]
	}
	var servers []server
	switch o.servers {
	case serversOne:
		servers = []server{{nodes: some(nodes, o.replicas)}}
	case serversSite:
		var sites []string
		of := make(map[string][]host.Host)
		for _, h := range nodes {
			if of[h.Site()] == nil {
				sites = append(sites, h.Site())
			}
			of[h.Site()] = append(of[h.Site()], h)
		}
		for _, site := range sites {
			servers = append(servers, server{nodes: some(of[site], o.replicas)})
		}
	case serversNode:
		for i := range nodes {
			around := append(slices.Clone(nodes[i:]), nodes[:i]...)
			servers = append(servers, server{nodes: around[:max(1, o.replicas)]})
		}
	}
	for i := range servers {
		s := &servers[i]
		s.name, s.group = s.nodes[0].Name(), len(s.nodes) > 1 || o.resizable()
	}
	return servers, nil
}

// serverFor returns the server for a node's areas: its own, else its site's, else the first.
func serverFor(servers []server, node host.Host) server {
	for _, s := range servers {
		if s.name == node.Name() {
			return s
		}
	}
	for _, s := range servers {
		if s.nodes[0].Site() == node.Site() {
			return s
		}
	}
	return servers[0]
}
