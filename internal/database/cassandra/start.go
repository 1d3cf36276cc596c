package cassandra

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
)

// startsPerCPU is how many members may be starting at the same time for each processor.
// A start takes 7 to 9 s of CPU; more at once would come near to Cassandra's own
// timeouts.
const startsPerCPU = 4

// Start implements database.Database.
func (d *Cassandra) Start(ctx context.Context, env database.Env) (database.Cluster, error) {
	c, err := d.newCluster(ctx, env)
	if err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context) error {
	c.ReportProgress("starting %d cassandra", len(c.All()))
	if err := c.startAll(ctx); err != nil {
		return err
	}
	c.ReportProgress("forming the cluster")
	limit := fmt.Errorf("cassandra is not ready after %v", c.options.start)
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.start, limit)
	defer cancel()
	if err := c.Servers.Await(ctx, withPacing(c.Ready)); err != nil {
		return fmt.Errorf("forming the cluster: %w", err)
	}
	if err := c.settleSeeds(ctx); err != nil {
		return err
	}
	if err := c.createTable(ctx); err != nil {
		return err
	}
	if err := c.Servers.Await(ctx, withPacing(c.Ready)); err != nil {
		return fmt.Errorf("forming the cluster: %w", err)
	}
	return nil
}

// startAll starts the first members and waits until each says that it serves. The error
// is that of the first that failed; when time was up, those of all that were not ready.
func (c *cluster) startAll(ctx context.Context) error {
	members := c.All()
	errs := make([]error, len(members))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(startsPerCPU * runtime.NumCPU())
	for i, m := range members {
		g.Go(func() error {
			errs[i] = c.startMember(gctx, m)
			return errs[i]
		})
	}
	first := g.Wait()
	if first != nil && ctx.Err() != nil {
		return errors.Join(errs...)
	}
	return first
}

// startMember starts a member without data and waits until it serves.
func (c *cluster) startMember(ctx context.Context, m *member) error {
	if err := m.wipe(ctx); err != nil {
		return err
	}
	if err := c.launch(ctx, m, false); err != nil {
		return err
	}
	return m.Server().Await(ctx, c.options.start, withPacing(m.checkServing))
}

// gossiper is the bean of a member's gossip.
const gossiper = "org.apache.cassandra.net:type=Gossiper"

// settleSeeds has the members know those as seeds that are: all were each other's while
// the cluster was new, since one that is no seed gives up when it starts before them.
func (c *cluster) settleSeeds(ctx context.Context) error {
	seeds := c.seedAddresses()
	for _, m := range c.All() {
		m.config.seeds = seeds
		if err := m.configure(ctx); err != nil {
			return err
		}
		if err := m.jmx.exec(ctx, gossiper, "reloadSeeds"); err != nil {
			return fmt.Errorf("telling cassandra on %s its seeds: %w", m.host.Name(), err)
		}
	}
	return nil
}
