package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
	"skerry/internal/host"
)

// cluster is a running Redis Cluster.
type cluster struct {
	env     database.Env
	options options
	log     *slog.Logger

	// resizing is held while a node joins or leaves.
	resizing sync.Mutex

	mu      sync.Mutex
	members []*member
	logs    map[string]string // of every server that was ever started
	err     error

	failed   chan struct{} // closed when err is set
	watchers sync.WaitGroup
}

var _ database.Cluster = (*cluster)(nil)

// Start implements database.Database.
func (d *Redis) Start(ctx context.Context, env database.Env) (database.Cluster, error) {
	o, err := parseOptions(len(env.Nodes), env.Options)
	if err != nil {
		return nil, err
	}
	c := &cluster{env: env, options: o, log: env.Log, logs: make(map[string]string), failed: make(chan struct{})}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context) error {
	c.say("starting %d redis-server", len(c.env.Nodes))
	g, gctx := errgroup.WithContext(ctx)
	members := make([]*member, len(c.env.Nodes))
	for i, h := range c.env.Nodes {
		g.Go(func() (err error) {
			members[i], err = startMember(gctx, h, c.env.Installation, c.options)
			return err
		})
	}
	err := g.Wait()
	for _, m := range members {
		if m != nil {
			c.add(m)
		}
	}
	if err != nil {
		return err
	}
	c.say("forming the cluster")
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("redis is not ready after %v", readyTimeout))
	defer cancel()
	if err := c.form(ctx); err != nil {
		return errors.Join(fmt.Errorf("forming the cluster: %w", err), c.Err())
	}
	if err := c.await(ctx, c.Ready); err != nil {
		return fmt.Errorf("forming the cluster: %w", err)
	}
	return nil
}

func (c *cluster) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.log.Info(text, "database", Name)
	if c.env.Progress != nil {
		c.env.Progress(text)
	}
}

// add takes a running server in and watches it.
func (c *cluster) add(m *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = append(c.members, m)
	c.logs[Name+"-"+m.host.Name()] = m.log()
	c.watchers.Go(func() {
		<-m.process.Done()
		if !m.leaving.Load() {
			c.fail(m.death())
		}
	})
}

// remove ends a server and its membership here.
func (c *cluster) remove(ctx context.Context, m *member) error {
	c.mu.Lock()
	c.members = slices.DeleteFunc(c.members, func(o *member) bool { return o == m })
	c.mu.Unlock()
	return m.stop(ctx)
}

func (c *cluster) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.failed)
	}
}

// current are the members at this moment.
func (c *cluster) current() []*member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.members)
}

// Properties implements database.Cluster.
func (c *cluster) Properties() map[string]string {
	var hosts []string
	for _, m := range c.current() {
		hosts = append(hosts, m.addr)
	}
	return map[string]string{PropHosts: strings.Join(hosts, ","), PropCluster: "true"}
}

// Failed implements database.Cluster.
func (c *cluster) Failed() <-chan struct{} { return c.failed }

// Err implements database.Cluster.
func (c *cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Logs implements database.Cluster.
func (c *cluster) Logs() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	logs := make(map[string]string, len(c.logs))
	for k, v := range c.logs {
		logs[k] = v
	}
	return logs
}

// Stop implements database.Cluster.
func (c *cluster) Stop(ctx context.Context) error {
	c.mu.Lock()
	members := c.members
	c.members = nil
	c.mu.Unlock()
	errs := make([]error, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() {
			if err := m.stop(ctx); err != nil {
				errs[i] = fmt.Errorf("stopping redis on %s: %w", m.host.Name(), err)
			}
		})
	}
	all.Wait()
	c.watchers.Wait()
	return errors.Join(errs...)
}

// await asks until the answer is nil.
func (c *cluster) await(ctx context.Context, ask func(context.Context) error) error {
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.failed:
			return c.Err()
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(poll):
		}
	}
}

// member finds the server on a node.
func (c *cluster) member(h host.Host) *member {
	for _, m := range c.current() {
		if m.host.Name() == h.Name() {
			return m
		}
	}
	return nil
}
