package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// cluster is a running Redis Cluster.
type cluster struct {
	kind    kind
	env     database.Env
	options options
	log     *slog.Logger
	servers daemon.Set
	members daemon.Members[*member]
}

var (
	_ database.Cluster    = (*cluster)(nil)
	_ database.Replicated = (*cluster)(nil)
)

// Start implements database.Database.
func (d *Redis) Start(ctx context.Context, env database.Env) (database.Cluster, error) {
	o, err := parseOptions(len(env.Nodes), env.Options)
	if err != nil {
		return nil, err
	}
	c := &cluster{kind: d.kind, env: env, options: o, log: env.Log}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context) error {
	c.say("starting %d %s", len(c.env.Nodes), c.kind.server)
	g, gctx := errgroup.WithContext(ctx)
	members := make([]*member, len(c.env.Nodes))
	for i, h := range c.env.Nodes {
		g.Go(func() (err error) {
			members[i], err = c.startNew(gctx, h, false)
			return err
		})
	}
	err := g.Wait()
	for _, m := range members {
		if m != nil {
			c.members.Add(m)
		}
	}
	if err != nil {
		return err
	}
	c.say("forming the cluster")
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("%s is not ready after %v", c.kind.name, readyTimeout))
	defer cancel()
	if err := c.form(ctx); err != nil {
		return errors.Join(fmt.Errorf("forming the cluster: %w", err), c.Err())
	}
	if err := c.servers.Await(ctx, c.Ready); err != nil {
		return fmt.Errorf("forming the cluster: %w", err)
	}
	return nil
}

func (c *cluster) say(format string, args ...any) { c.env.Say(c.kind.name, format, args...) }

// remove ends a server and its membership here.
func (c *cluster) remove(ctx context.Context, m *member) error {
	c.members.Drop(m)
	return m.stop(ctx)
}

// current are the members at this moment, running those of them that are not halted.
func (c *cluster) current() []*member { return c.members.All() }

func (c *cluster) running() []*member {
	return slices.DeleteFunc(c.current(), func(m *member) bool { return m.halted.Load() })
}

// halted are the members whose processes have been ended and not been started again.
func (c *cluster) halted() []*member {
	return slices.DeleteFunc(c.current(), func(m *member) bool { return !m.halted.Load() })
}

// member finds the server on a node.
func (c *cluster) member(h host.Host) *member { return c.memberOn(h.Name()) }

func (c *cluster) memberOn(node string) *member { return c.members.On(node) }

// Properties implements database.Cluster.
func (c *cluster) Properties() map[string]string {
	var hosts []string
	for _, m := range c.current() {
		hosts = append(hosts, m.addr)
	}
	p := map[string]string{PropHosts: strings.Join(c.env.Contacts(c.options.port, hosts), ","), PropCluster: "true"}
	if c.options.wait > 0 {
		p[PropWait] = strconv.Itoa(c.options.wait)
	}
	return p
}

// Failed implements database.Cluster.
func (c *cluster) Failed() <-chan struct{} { return c.servers.Failed() }

// Err implements database.Cluster.
func (c *cluster) Err() error { return c.servers.Err() }

// Logs implements database.Cluster.
func (c *cluster) Logs() map[string]files.File { return c.servers.Logs() }

// Stop implements database.Cluster.
func (c *cluster) Stop(ctx context.Context) error {
	err := c.servers.Stop(ctx)
	for _, m := range c.members.All() {
		c.members.Drop(m)
		err = errors.Join(err, m.admin.Close())
	}
	return err
}
