package hydra

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/load"
	"skerry/internal/machine/host"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/hydraclient"
)

const readyTimeout = 60 * time.Second

type cluster struct {
	*daemon.Cluster[*member]
	name    string // distinguishes the cluster from earlier ones whose files remain
	options options

	// names is the DNS server that resolves the wallet, "" if operations use the members.
	walletDNS string

	mu     sync.Mutex
	stores map[string]*store // by cloud

	// stop closes stopping, and so ends the watchers of stores.
	stopping chan struct{}
	stop     func()
	watchers sync.WaitGroup
}

var (
	_ database.Cluster    = (*cluster)(nil)
	_ database.Replicated = (*cluster)(nil)
)

func (d *Hydra) Start(ctx context.Context, env database.Env) (database.Cluster, error) {
	o, err := parseOptions(env.Options)
	if err != nil {
		return nil, err
	}
	if o.witness != "" && !slices.ContainsFunc(env.Nodes, func(h host.Host) bool { return h.Name() == o.witness }) {
		return nil, fmt.Errorf("%w: witness %s is not a data node", ErrOption, o.witness)
	}
	c := &cluster{
		name: "lab-" + strconv.FormatUint(rand.Uint64(), 36), Cluster: daemon.NewCluster[*member](Name, env), options: o, stores: make(map[string]*store),
		stopping: make(chan struct{}),
	}
	c.stop = sync.OnceFunc(func() { close(c.stopping) })
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context) error {
	c.ReportProgress("starting %d members of hydra", len(c.Env.Nodes))
	for _, h := range c.Env.Nodes {
		if _, err := c.addMember(h); err != nil {
			return err
		}
	}
	members := c.All()
	err := daemon.ForEach(ctx, members, func(ctx context.Context, _ int, m *member) error {
		return c.startNew(ctx, m, members, false)
	})
	if err != nil {
		return err
	}
	c.ReportProgress("awaiting a leader")
	err = daemon.ForEach(ctx, members, func(ctx context.Context, _ int, m *member) error {
		return m.Server().Await(ctx, readyTimeout, m.checkServing)
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("hydra is not ready after %v", readyTimeout))
	defer cancel()
	err = c.Servers.Await(ctx, func(ctx context.Context) error {
		m, err := c.findServing(ctx, nil)
		if err != nil {
			return err
		}
		for _, table := range c.tableNames() {
			err = errors.Join(err, m.admin.CreateTable(ctx, table, hydraclient.Ack(api.Applied)))
		}
		return errors.Join(err, c.Ready(ctx))
	})
	if err != nil {
		return err
	}
	return c.startFronts(ctx)
}

func (c *cluster) addMember(h host.Host) (*member, error) {
	m, err := c.newMember(h)
	if err != nil {
		return nil, err
	}
	c.Add(m)
	return m, nil
}

func (c *cluster) dropMember(m *member) error {
	c.Drop(m)
	return m.admin.Close()
}

func (c *cluster) Properties() map[string]string {
	var endpoints []string
	for _, m := range c.All() {
		if !m.witness {
			endpoints = append(endpoints, m.addr)
		}
	}
	p := map[string]string{
		PropEndpoints: strings.Join(endpoints, ","), PropReads: c.options.reads, PropAck: c.options.ack, PropRoute: c.options.route,
		PropStaleness: strconv.FormatInt(c.options.staleness.Milliseconds(), 10), PropShare: strconv.Itoa(c.options.share),
	}
	if c.walletDNS != "" {
		p[PropWallet] = c.walletDNS
	}
	return p
}

// OpenMember implements database.Replicated. Reads return rows of the member's cloud database.
func (c *cluster) OpenMember(ctx context.Context, node string) (load.Client, error) {
	m := c.On(node)
	if m == nil || m.witness {
		return nil, fmt.Errorf("reading the copy of %s: %w", node, database.ErrNotMember)
	}
	s := settings{endpoints: []string{m.addr}, reads: api.Local, timeout: defaultTimeout}
	return newWorker(ctx, s, host.Dialer(m.host, adminTimeout), nil)
}

// Stop implements database.Cluster with SIGKILL: on SIGTERM a leader would transfer the leadership to members that are stopping.
func (c *cluster) Stop(ctx context.Context) error {
	errs := []error{c.Servers.Kill()}
	for _, m := range c.All() {
		errs = append(errs, c.dropMember(m))
	}
	return errors.Join(append(errs, c.stopStores(ctx))...)
}

// Ready implements database.Cluster: every member names the same leader and serves a linearizable read.
func (c *cluster) Ready(ctx context.Context) error {
	return daemon.CheckLeader(ctx, c.All(), func(ctx context.Context, m *member) (string, error) {
		if err := m.checkServing(ctx); err != nil {
			return "", err
		}
		s, err := m.queryStatus(ctx)
		return s.Leader, err
	})
}

// Members implements database.Cluster: a state is Raft's role, witness or unreachable.
func (c *cluster) Members(ctx context.Context) ([]database.Member, error) {
	return daemon.ReportMembers(ctx, c.All(), func(ctx context.Context, m *member, into *database.Member) error {
		s, err := m.queryStatus(ctx)
		if err != nil {
			return ctx.Err() // its state is unreachable
		}
		if into.State = s.Role; m.witness {
			into.State = "witness"
			return nil
		}
		into.Share = 1
		n, err := m.admin.Count(ctx, c.tableNames()[0], hydraclient.Read(api.Local))
		if err != nil && !errors.Is(err, hydraclient.ErrUnknownTable) {
			return fmt.Errorf("counting the rows of hydra on %s: %w", m.Name(), err)
		}
		into.Rows = n
		return nil
	})
}

// findServing returns an answering member, preferably the leader, never a witness or the excluded member.
func (c *cluster) findServing(ctx context.Context, without *member) (*member, error) {
	return daemon.FindServing(ctx, daemon.RunningExcept(c.All(), without), func(ctx context.Context, m *member) (daemon.Role, error) {
		if m.witness || m.Server() == nil {
			return daemon.RoleNone, nil
		}
		s, err := m.queryStatus(ctx)
		switch {
		case err != nil:
			return daemon.RoleNone, err
		case s.Leader == m.Name():
			return daemon.RoleLeader, nil
		case s.Leader != "" && s.Role != "learner" && s.Problem == "":
			return daemon.RoleFollower, nil
		}
		return daemon.RoleNone, nil
	})
}

func (c *cluster) Count(ctx context.Context) (int64, error) {
	m, err := c.findServing(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	n, err := c.countRows(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("counting rows: querying hydra on %s: %w", m.host.Name(), err)
	}
	return n, nil
}

func (c *cluster) Clear(ctx context.Context) error {
	m, err := c.findServing(ctx, nil)
	if err != nil {
		return fmt.Errorf("clearing the table: %w", err)
	}
	for _, table := range c.tableNames() {
		if err := m.admin.ClearTable(ctx, table, hydraclient.Ack(api.Applied)); err != nil {
			return fmt.Errorf("clearing the table: querying hydra on %s: %w", m.host.Name(), err)
		}
	}
	return nil
}
