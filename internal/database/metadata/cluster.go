package metadata

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	vocab "skerry/systems/metadata"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// readyTimeout bounds how long new servers may take to serve.
const readyTimeout = 60 * time.Second

// cluster is a running metadata service.
type cluster struct {
	env       database.Env
	options   options
	log       *slog.Logger
	servers   []server // at the beginning, that of the root first
	processes daemon.Set

	// changing is held while membership changes or a node halts or is revived.
	changing database.Changing

	mu       sync.Mutex
	replicas []*replica
	names    int // of replicas that were given out
}

var _ database.Cluster = (*cluster)(nil)

// Start implements database.Database.
func (*Metadata) Start(ctx context.Context, env database.Env) (database.Cluster, error) {
	o, err := parseOptions(env.Options)
	if err != nil {
		return nil, err
	}
	c := &cluster{env: env, options: o, log: env.Log}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.servers, err = o.layout(env.Nodes); err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context) error {
	for _, s := range c.servers {
		for _, h := range s.nodes {
			c.add(s, h)
		}
	}
	all := c.current()
	c.env.Say(Name, "starting %d replicas of %d metadata servers", len(all), len(c.servers))
	g, gctx := errgroup.WithContext(ctx)
	for _, r := range all {
		g.Go(func() error { return c.launch(gctx, r, false) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	g, gctx = errgroup.WithContext(ctx)
	for _, r := range all {
		g.Go(func() error { return r.Server().Await(gctx, readyTimeout, r.serves) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	c.env.Say(Name, "making the tree")
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("metadata is not ready after %v", readyTimeout))
	defer cancel()
	return c.processes.Await(ctx, func(ctx context.Context) error { return errors.Join(c.furnish(ctx), c.Ready(ctx)) })
}

// Tops of the tree.
const (
	ownTop    = "/own"
	sharedTop = "/shared"
)

// areas are the directories of the nodes that the cluster began with.
func (c *cluster) areas() []string {
	var all []string
	for _, top := range []string{ownTop, sharedTop} {
		for _, h := range c.env.Nodes {
			all = append(all, path.Join(top, h.Name()))
		}
	}
	return all
}

// furnish makes what the tree begins with. To do so twice is no error.
func (c *cluster) furnish(ctx context.Context) error {
	by, err := c.serving(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := ask(ctx, by.admin, vocab.Command{Op: vocab.Mkdir, Path: tableDir(""), Parents: true}); err != nil {
		return fmt.Errorf("making the table: %w", err)
	}
	for _, top := range []string{ownTop, sharedTop} {
		for _, h := range c.env.Nodes {
			area := path.Join(top, h.Name())
			if _, err := ask(ctx, by.admin, vocab.Command{Op: vocab.Mkdir, Path: area, Parents: true}); err != nil {
				return fmt.Errorf("making the areas: %w", err)
			}
			s := serverOf(c.servers, h)
			if s.name == c.servers[0].name {
				continue
			}
			_, err := ask(ctx, by.admin, vocab.Command{Op: vocab.Delegate, Path: area, Owner: s.name})
			if err != nil && !errors.Is(err, vocab.ErrElsewhere) { // it was delegated before
				return fmt.Errorf("giving %s to %s: %w", area, s.name, err)
			}
		}
	}
	return nil
}

// add makes a replica known here; nothing of it runs yet.
func (c *cluster) add(s server, h host.Host) *replica {
	c.mu.Lock()
	defer c.mu.Unlock()
	slot := 0
	for _, r := range c.replicas {
		if r.host.Name() == h.Name() {
			slot++
		}
	}
	r := c.newReplica(s, h, slot)
	c.replicas = append(c.replicas, r)
	return r
}

// drop forgets a replica, whose process has ended.
func (c *cluster) drop(r *replica) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replicas = slices.DeleteFunc(c.replicas, func(o *replica) bool { return o == r })
	r.close()
	return nil
}

// current are the replicas at this moment.
func (c *cluster) current() []*replica {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.replicas)
}

// on are those of a node.
func (c *cluster) on(node string) []*replica {
	return slices.DeleteFunc(c.current(), func(r *replica) bool { return r.host.Name() != node })
}

// addresses are a server's, with commas between.
func (c *cluster) addresses(server string) string {
	var all []string
	for _, r := range c.current() {
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
	if c.env.Control != nil {
		site = c.env.Control.Site()
	}
	for _, r := range c.current() {
		if r.host.Site() == site {
			near = append(near, r.addr)
		} else {
			far = append(far, r.addr)
		}
	}
	nodes := slices.Clone(c.env.Nodes)
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

// Failed implements database.Cluster.
func (c *cluster) Failed() <-chan struct{} { return c.processes.Failed() }

// Err implements database.Cluster.
func (c *cluster) Err() error { return c.processes.Err() }

// Logs implements database.Cluster.
func (c *cluster) Logs() map[string]files.File { return c.processes.Logs() }

// Stop implements database.Cluster. Replicas are killed, all at the same time: what they
// acknowledged is on disk.
func (c *cluster) Stop(context.Context) error {
	errs := []error{c.processes.Kill()}
	for _, r := range c.current() {
		errs = append(errs, c.drop(r))
	}
	return errors.Join(errs...)
}
