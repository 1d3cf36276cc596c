package etcd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

const readyTimeout = 60 * time.Second

type cluster struct {
	*daemon.Cluster[*member]
	options options
}

var (
	_ database.Cluster    = (*cluster)(nil)
	_ database.Replicated = (*cluster)(nil)

	_ database.UpgradableCluster = (*cluster)(nil)
)

func (d *Etcd) Start(ctx context.Context, env database.Env) (database.Cluster, error) {
	o, err := parseOptions(env.Options, env.RTT)
	if err != nil {
		return nil, err
	}
	if _, err := database.OrderFirst(env.Nodes, "leader", o.leader); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOption, err)
	}
	c := &cluster{Cluster: daemon.NewCluster[*member](Name, env), options: o}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context) error {
	c.ReportProgress("starting %d etcd", len(c.Env.Nodes))
	var peers []string
	for _, h := range c.Env.Nodes {
		peers = append(peers, h.Name()+"="+c.options.peerURL(h))
	}
	g, gctx := errgroup.WithContext(ctx)
	for i, h := range c.Env.Nodes {
		m, err := c.addMember(h)
		if err != nil {
			return err
		}
		// The first stands for election at once, the others after a timeout, so that the votes are not split.
		advance := "--initial-election-tick-advance=" + strconv.FormatBool(i == 0)
		g.Go(func() error { return c.startNew(gctx, m, stateNew, strings.Join(peers, ","), advance) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	c.ReportProgress("awaiting a leader")
	for _, m := range c.All() {
		g.Go(func() error { return m.Server().Await(ctx, readyTimeout, m.checkServing) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("etcd is not ready after %v", readyTimeout))
	defer cancel()
	if err := c.Servers.Await(ctx, c.Ready); err != nil {
		return err
	}
	return c.ensureLeader(ctx)
}

func (c *cluster) addMember(h host.Host) (*member, error) {
	m, err := newMember(h, c.options)
	if err != nil {
		return nil, err
	}
	c.Add(m)
	return m, nil
}

func (c *cluster) dropMember(m *member) error {
	c.Drop(m)
	return closeClient(m.admin)
}

func (c *cluster) Properties() map[string]string {
	var endpoints []string
	for _, m := range c.All() {
		endpoints = append(endpoints, m.addr)
	}
	return map[string]string{PropEndpoints: strings.Join(endpoints, ","), PropRead: c.options.read}
}

// Stop implements database.Cluster with SIGKILL: on SIGTERM a leader tries for 7 s to hand over to ending members.
func (c *cluster) Stop(context.Context) error {
	errs := []error{c.Servers.Kill()}
	for _, m := range c.All() {
		errs = append(errs, c.dropMember(m))
	}
	return errors.Join(errs...)
}

func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	return daemon.HaltMember(ctx, &c.MemberList, node.Name(), manner)
}

func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	run := func(ctx context.Context, m *member) error { return c.startProcess(ctx, m) }
	serves := func(ctx context.Context, m *member) error { return m.checkServing(ctx) }
	return daemon.ReviveMember(ctx, &c.MemberList, node.Name(), run, serves)
}

// ensureLeader makes the configured member the leader and returns when all members agree.
func (c *cluster) ensureLeader(ctx context.Context) error {
	if c.options.leader == "" {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("%s did not become etcd's leader in %v", c.options.leader, readyTimeout))
	defer cancel()
	to := c.On(c.options.leader)
	if to == nil {
		return fmt.Errorf("option leader %s: %w", c.options.leader, database.ErrNotMember)
	}
	return c.Servers.Await(ctx, func(ctx context.Context) error {
		s, err := to.queryStatus(ctx)
		if err != nil {
			return err
		}
		if raftRole(s) == "leader" {
			return c.Ready(ctx)
		}
		from, err := c.findServing(ctx, nil)
		if err != nil {
			return err
		}
		if err := moveLeader(ctx, from, to); err != nil {
			return err
		}
		return fmt.Errorf("%w: %s does not lead yet", database.ErrNotReady, to.host.Name())
	})
}

func moveLeader(ctx context.Context, from, to *member) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	if _, err := from.admin.MoveLeader(ctx, to.id.Load()); err != nil {
		return fmt.Errorf("moving the leadership from %s to %s: %w", from.host.Name(), to.host.Name(), err)
	}
	return nil
}

// UpgradeOrder implements database.UpgradableCluster: the leader last, so that it hands over once.
func (c *cluster) UpgradeOrder(ctx context.Context, nodes []string) ([]string, error) {
	leader, err := c.findServing(ctx, nil)
	if err != nil || !slices.Contains(nodes, leader.Name()) {
		return nodes, err
	}
	followers := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return n == leader.Name() })
	return append(followers, leader.Name()), nil
}

func (c *cluster) Upgrade(ctx context.Context, node host.Host, to database.Installation) (database.Change, error) {
	readable := func(ctx context.Context, m *member) error { return c.checkLog(ctx, m, to.Version) }
	return c.RunUpgrade(ctx, c, node, to, readable, func(ctx context.Context, m *member) (string, error) {
		s, err := m.queryStatus(ctx)
		if err != nil {
			return "", err
		}
		return s.Version, nil
	})
}

// checkLog returns an error if a version cannot read a member's log. Members of 3.5 and older write
// requests of the second API into it, which 3.6 reads and 3.7 does not:
//
//  1. Members start with 3.5, and are upgraded to 3.6 and at once to 3.7.
//  2. The log begins with requests of 3.5 that publish the names of the members.
//  3. The member of 3.7 panics ("could not find a header").
//
// A snapshot, which 3.6 makes after 10,000 writes, ends the need for earlier requests.
func (c *cluster) checkLog(ctx context.Context, m *member, version string) error {
	started := c.Env.Installation.Version
	if !strings.HasPrefix(version, "3.7.") || !strings.HasPrefix(started, "3.4.") && !strings.HasPrefix(started, "3.5.") {
		return nil
	}
	if len(files.Glob(ctx, m.host.Files(), filepath.Join(m.dir(), "data", "member", "snap", "*.snap"))) > 0 {
		return nil
	}
	return fmt.Errorf("%w: the log of %s has requests of %s, which %s cannot read, until 3.6 makes a snapshot after 10,000 writes",
		database.ErrUpgrade, m.Name(), started, version)
}
