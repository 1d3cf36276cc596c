package cassandra

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

type cluster struct {
	*daemon.Cluster[*member]
	options   options
	ringDelay time.Duration
	// centers are the data centres that hold replicas, in topology order.
	centers []string
}

var (
	_ database.Cluster    = (*cluster)(nil)
	_ database.Replicated = (*cluster)(nil)

	_ database.UpgradableCluster = (*cluster)(nil)
)

func (d *Cassandra) newCluster(ctx context.Context, env database.Env) (*cluster, error) {
	o, err := parseOptions(len(env.Nodes), env.Options)
	if err != nil {
		return nil, err
	}
	if o.version != "" && !strings.HasPrefix(env.Installation.Version+".", o.version+".") {
		if env.Installation, err = database.Locate(d, o.version, ""); err != nil {
			return nil, err
		}
	}
	if v := env.Installation.Version; !supported(v) {
		return nil, fmt.Errorf("%w: cassandra %s; known: %s", database.ErrVersion, v, strings.Join(series(), ", "))
	}
	if _, err := librariesOf(ctx, env.Nodes[0].Files(), env.Installation); err != nil {
		return nil, err
	}
	c := &cluster{Cluster: daemon.NewCluster[*member](Name, env), options: o, ringDelay: o.ringDelay}
	if c.ringDelay == 0 {
		c.ringDelay = defaultRingDelay + ringDelayTrips*env.RTT
	}
	return c, c.placeMembers()
}

func (c *cluster) placeMembers() error {
	sizes := map[string]int{}
	places := make([]ringPlace, len(c.Env.Nodes))
	for i, h := range c.Env.Nodes {
		dc := c.center(h)
		if !slices.Contains(c.centers, dc) {
			c.centers = append(c.centers, dc)
		}
		places[i] = ringPlace{slices.Index(c.centers, dc), sizes[dc]}
		sizes[dc]++
	}
	var perCenter []int
	for _, dc := range c.centers {
		if sizes[dc] < c.options.replication {
			return fmt.Errorf("%w: replication_factor %d needs as many nodes in each data centre, %s has %d",
				ErrOption, c.options.replication, dc, sizes[dc])
		}
		perCenter = append(perCenter, sizes[dc])
	}
	tokens := assignTokens(perCenter, c.options.tokens)
	for i, h := range c.Env.Nodes {
		m := c.newMember(h)
		m.config.tokens = tokens[places[i].center][places[i].index]
		c.Add(m)
	}
	var all []string
	for _, m := range c.All() {
		all = append(all, m.host.Addr())
	}
	for _, m := range c.All() {
		m.config.seeds = all // until the cluster is formed
	}
	return nil
}

func (c *cluster) center(h host.Host) string {
	if c.options.strategy == strategyNetwork {
		return h.Site()
	}
	return defaultCenter
}

func (c *cluster) newMember(h host.Host) *member {
	return &member{host: h, jmx: newJMX(h, c.options.adminPort), config: config{
		options: c.options, dir: filepath.Join(h.Dir(), Name), listen: host.Listen(h), addr: h.Addr(),
		center: c.center(h), seeds: c.seedAddresses(),
	}}
}

// isSeed reports whether a node is a seed: one of the first nodes of the cluster.
func (c *cluster) isSeed(h host.Host) bool {
	return slices.ContainsFunc(c.Env.Nodes[:c.options.seeds], func(s host.Host) bool { return s.Name() == h.Name() })
}

func (c *cluster) seedAddresses() []string {
	var list []string
	for _, m := range c.All() {
		if c.isSeed(m.host) {
			list = append(list, m.host.Addr())
		}
	}
	return list
}

func (c *cluster) Properties() map[string]string {
	var hosts []string
	for _, m := range c.All() {
		hosts = append(hosts, fmt.Sprintf("%s:%d", m.host.Addr(), c.options.nativePort))
	}
	contacts := c.Env.Contacts(c.options.nativePort, hosts)
	p := map[string]string{
		PropHosts: strings.Join(contacts, ","), PropKeyspace: defaultKeyspace, PropSchema: schemaExtend,
		PropReadLevel: c.options.readLevel, PropWriteLevel: c.options.writeLevel,
	}
	if !slices.Equal(contacts, hosts) {
		p[PropContact] = "true"
	}
	if c.Env.Control != nil && c.options.strategy == strategyNetwork && slices.Contains(c.centers, c.Env.Control.Site()) {
		p[PropCenter] = c.Env.Control.Site()
	}
	return p
}

func (c *cluster) Stop(ctx context.Context) error {
	var errs []error
	for _, m := range c.All() {
		errs = append(errs, m.Kill())
	}
	return errors.Join(append(errs, c.Servers.Stop(ctx))...) // waits for those that watch
}

// startsPerCPU limits concurrent starts per processor. A start takes 7 to 9 s of CPU.
const startsPerCPU = 4

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

// startAll starts the first members. After the deadline it returns the errors of all that were not ready.
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

func (c *cluster) startMember(ctx context.Context, m *member) error {
	if err := m.wipe(ctx); err != nil {
		return err
	}
	if err := c.launch(ctx, m, false); err != nil {
		return err
	}
	return m.Server().Await(ctx, c.options.start, withPacing(m.checkServing))
}

const gossiper = "org.apache.cassandra.net:type=Gossiper"

// settleSeeds sets the final seeds. In a new cluster all members are seeds, so that they can start in any order.
func (c *cluster) settleSeeds(ctx context.Context) error {
	seeds := c.seedAddresses()
	for _, m := range c.All() {
		m.config.seeds = seeds
		if err := m.configure(ctx); err != nil {
			return err
		}
		if err := m.jmx.exec(ctx, gossiper, "reloadSeeds"); err != nil {
			return fmt.Errorf("reloading the seeds of cassandra on %s: %w", m.host.Name(), err)
		}
	}
	return nil
}
