package cassandra

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// cluster is a running Cassandra cluster.
type cluster struct {
	env       database.Env
	options   options
	libraries libraries
	ringDelay time.Duration
	log       *slog.Logger
	set       daemon.Set
	// centers are the data centres that hold replicas, in topology order.
	centers []string

	// changing is held while members come, go, halt or are revived.
	changing database.Changing

	mu      sync.Mutex
	members []*member
}

var (
	_ database.Cluster    = (*cluster)(nil)
	_ database.Replicated = (*cluster)(nil)
)

// newCluster prepares a cluster of which nothing runs yet.
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
	l, err := librariesOf(ctx, env.Nodes[0].Files(), env.Installation)
	if err != nil {
		return nil, err
	}
	c := &cluster{env: env, options: o, libraries: l, log: env.Log, ringDelay: o.ringDelay}
	if c.ringDelay == 0 {
		c.ringDelay = defaultRingDelay + ringDelayTrips*env.RTT
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	return c, c.place()
}

// place decides where on the ring the first members stand.
func (c *cluster) place() error {
	sizes := map[string]int{}
	places := make([]place, len(c.env.Nodes))
	for i, h := range c.env.Nodes {
		dc := c.center(h)
		if !slices.Contains(c.centers, dc) {
			c.centers = append(c.centers, dc)
		}
		places[i] = place{slices.Index(c.centers, dc), sizes[dc]}
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
	for i, h := range c.env.Nodes {
		m := c.newMember(h)
		m.config.tokens = tokens[places[i].center][places[i].index]
		c.members = append(c.members, m)
	}
	var all []string
	for _, m := range c.members {
		all = append(all, m.host.Addr())
	}
	for _, m := range c.members {
		m.config.seeds = all // until the cluster is formed
	}
	return nil
}

// center is the data centre of a node.
func (c *cluster) center(h host.Host) string {
	if c.options.strategy == strategyNetwork {
		return h.Site()
	}
	return defaultCenter
}

// newMember is a member that does not run.
func (c *cluster) newMember(h host.Host) *member {
	return &member{host: h, jmx: newJMX(h, c.options.adminPort), config: config{
		options: c.options, dir: filepath.Join(h.Dir(), Name), listen: host.Listen(h), addr: h.Addr(),
		center: c.center(h), seeds: c.seeds(),
	}}
}

// isSeed tells whether a node is one of the seeds: the first of the cluster's nodes.
func (c *cluster) isSeed(h host.Host) bool {
	return slices.ContainsFunc(c.env.Nodes[:c.options.seeds], func(s host.Host) bool { return s.Name() == h.Name() })
}

// seeds are the addresses of the members that are seeds.
func (c *cluster) seeds() []string {
	var list []string
	for _, m := range c.current() {
		if c.isSeed(m.host) {
			list = append(list, m.host.Addr())
		}
	}
	return list
}

func (c *cluster) say(format string, args ...any) { c.env.Say(Name, format, args...) }

// current are the members at this moment.
func (c *cluster) current() []*member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.members)
}

// member finds the one on a node.
func (c *cluster) member(h host.Host) *member {
	for _, m := range c.current() {
		if m.host.Name() == h.Name() {
			return m
		}
	}
	return nil
}

func (c *cluster) add(m *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = append(c.members, m)
}

func (c *cluster) remove(m *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = slices.DeleteFunc(c.members, func(o *member) bool { return o == m })
}

// Properties implements database.Cluster.
func (c *cluster) Properties() map[string]string {
	var hosts []string
	for _, m := range c.current() {
		hosts = append(hosts, fmt.Sprintf("%s:%d", m.host.Addr(), c.options.nativePort))
	}
	contacts := c.env.Contacts(c.options.nativePort, hosts)
	p := map[string]string{
		PropHosts: strings.Join(contacts, ","), PropKeyspace: defaultKeyspace, PropSchema: schemaExtend,
		PropReadLevel: c.options.readLevel, PropWriteLevel: c.options.writeLevel,
	}
	if !slices.Equal(contacts, hosts) {
		p[PropContact] = "true"
	}
	if c.env.Control != nil && c.options.strategy == strategyNetwork && slices.Contains(c.centers, c.env.Control.Site()) {
		p[PropCenter] = c.env.Control.Site()
	}
	return p
}

// Failed implements database.Cluster.
func (c *cluster) Failed() <-chan struct{} { return c.set.Failed() }

// Err implements database.Cluster.
func (c *cluster) Err() error { return c.set.Err() }

// Logs implements database.Cluster.
func (c *cluster) Logs() map[string]files.File { return c.set.Logs() }

// Stop implements database.Cluster. Nothing is drained: what is stopped is over.
func (c *cluster) Stop(ctx context.Context) error {
	var errs []error
	for _, m := range c.current() {
		if d := m.daemon.Load(); d != nil {
			errs = append(errs, d.Kill())
		}
	}
	return errors.Join(append(errs, c.set.Stop(ctx))...) // waits for those that watch
}
