package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
)

// cluster is a running Redis Cluster.
type cluster struct {
	*daemon.Cluster[*member]
	kind    kind
	options options
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
	c := &cluster{kind: d.kind, Cluster: daemon.NewCluster[*member](d.kind.name, env), options: o}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context) error {
	c.ReportProgress("starting %d %s", len(c.Env.Nodes), c.kind.server)
	g, gctx := errgroup.WithContext(ctx)
	members := make([]*member, len(c.Env.Nodes))
	for i, h := range c.Env.Nodes {
		g.Go(func() (err error) {
			members[i], err = c.startNew(gctx, h, false)
			return err
		})
	}
	err := g.Wait()
	for _, m := range members {
		if m != nil {
			c.Add(m)
		}
	}
	if err != nil {
		return err
	}
	c.ReportProgress("forming the cluster")
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("%s is not ready after %v", c.kind.name, readyTimeout))
	defer cancel()
	if err := c.formCluster(ctx); err != nil {
		return errors.Join(fmt.Errorf("forming the cluster: %w", err), c.Err())
	}
	if err := c.Servers.Await(ctx, c.Ready); err != nil {
		return fmt.Errorf("forming the cluster: %w", err)
	}
	return nil
}

func (c *cluster) ReportProgress(format string, args ...any) {
	c.Env.ReportProgress(c.kind.name, format, args...)
}

// removeMember ends a server and its membership here.
func (c *cluster) removeMember(ctx context.Context, m *member) error {
	c.Drop(m)
	return m.stop(ctx)
}

// runningMembers returns the members that are not halted.
func (c *cluster) runningMembers() []*member {
	return c.Select(func(m *member) bool { return !m.Halted() })
}

// haltedMembers are the members whose processes have been ended and not been started again.
func (c *cluster) haltedMembers() []*member {
	return c.Select((*member).Halted)
}

// Properties implements database.Cluster.
func (c *cluster) Properties() map[string]string {
	var hosts []string
	for _, m := range c.All() {
		hosts = append(hosts, m.addr)
	}
	p := map[string]string{PropHosts: strings.Join(c.Env.Contacts(c.options.port, hosts), ","), PropCluster: "true"}
	if c.options.wait > 0 {
		p[PropWait] = strconv.Itoa(c.options.wait)
	}
	return p
}

// Stop implements database.Cluster.
func (c *cluster) Stop(ctx context.Context) error {
	err := c.Servers.Stop(ctx)
	for _, m := range c.All() {
		c.Drop(m)
		err = errors.Join(err, m.admin.Close())
	}
	return err
}
