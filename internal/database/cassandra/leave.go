package cassandra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

// Leave implements database.Cluster.
//
// Graceful is a decommission: the member is LEAVING (accepted) and streams its data to the new owners. Complete: no
// member lists it as an owner, and its process has ended.
//
// Abrupt is removenode: the process is killed. Once the others have noticed, one of them removes it (accepted), and
// the new owners fetch its ranges from replicas. Complete: no member lists it.
func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (database.Change, error) {
	leave := c.decommission
	if manner == database.Abrupt {
		leave = c.removeNode
	}
	return c.RunLeave(ctx, node, daemon.LeaveSteps[*member]{
		Check: func(_ context.Context, m *member) error { return c.checkLeave(m) }, Leave: leave,
	})
}

// checkLeave refuses a leave of the last seed, or one that leaves too few nodes for the replicas.
func (c *cluster) checkLeave(m *member) error {
	seeds, center := 0, 0
	for _, o := range c.All() {
		if c.isSeed(o.host) {
			seeds++
		}
		if o.config.center == m.config.center {
			center++
		}
	}
	switch {
	case c.isSeed(m.host) && seeds == 1:
		return fmt.Errorf("%w: it is the only seed", database.ErrFixed)
	case center <= c.options.replication:
		return fmt.Errorf("%w: %d replicas need as many nodes in %s", database.ErrFixed, c.options.replication, m.config.center)
	}
	return nil
}

func (c *cluster) others(m *member) []*member {
	return c.Select(func(o *member) bool { return o != m })
}

func (c *cluster) decommission(ctx context.Context, m *member, timer *daemon.ChangeTimer) error {
	if err := c.Ready(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	// Forced: Cassandra's own tables have three replicas. checkLeave has checked the benchmark's table.
	go func() { done <- m.jmx.exec(ctx, storageService, "decommission(boolean)", true) }()
	var result error
	accepted := false
	err := c.awaitMember(ctx, m.Server(), func(ctx context.Context) error {
		select {
		case result = <-done:
			return nil
		default:
		}
		if !accepted {
			if v, err := m.queryView(ctx); err == nil && v.Mode == modeLeaving {
				timer.Accept()
				accepted = true
				c.ReportProgress("data is moving away from %s", m.host.Name())
			}
		}
		return fmt.Errorf("%w: %s is leaving", database.ErrNotReady, m.host.Name())
	})
	if err != nil {
		cancel()
		<-done
		return err
	}
	if result != nil {
		return fmt.Errorf("decommissioning: %w", result)
	}
	timer.Accept()
	timer.Moved(m.streamedBytes(ctx, "TotalOutgoingBytes"))
	if err := m.Server().Stop(ctx); err != nil {
		return err
	}
	c.Drop(m)
	return c.awaitAgreement(ctx)
}

const forgetTimeout = 2 * time.Minute

func (c *cluster) awaitAgreement(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, forgetTimeout, fmt.Errorf("the others do not agree after %v", forgetTimeout))
	defer cancel()
	others := c.All()
	if err := c.awaitMember(ctx, others[0].Server(), c.Ready); err != nil {
		return err
	}
	return c.settleSeeds(ctx) // one of them may be gone
}

// removeTimeout bounds the detection of a dead member, which takes 20 to 30 s by default.
const removeTimeout = 5 * time.Minute

func (c *cluster) removeNode(ctx context.Context, m *member, timer *daemon.ChangeTimer) error {
	others := c.others(m)
	if views, err := queryViews(ctx, others, false); err != nil {
		return err
	} else if i := slices.IndexFunc(views, func(v view) bool { return v.Mode != modeNormal }); i >= 0 {
		return fmt.Errorf("%w: %s is %s", database.ErrNotReady, views[i].member.host.Name(), views[i].Mode)
	}
	if err := m.Kill(); err != nil {
		return err
	}
	if err := c.removeDead(ctx, m, others, timer.Accept); err != nil {
		return err
	}
	c.Drop(m)
	return c.awaitAgreement(ctx)
}

// removeDead removes a member once the others have noticed its death. It calls begun when the removal starts.
func (c *cluster) removeDead(ctx context.Context, m *member, others []*member, begun func()) error {
	c.ReportProgress("waiting until the others notice that %s is gone", m.host.Name())
	notice, cancel := context.WithTimeoutCause(ctx, removeTimeout, fmt.Errorf("the others have not noticed after %v", removeTimeout))
	defer cancel()
	by := others[0]
	if err := c.awaitMember(notice, by.Server(), func(ctx context.Context) error { return checkDown(ctx, m, others) }); err != nil {
		return err
	}
	id, err := by.findHostID(ctx, m)
	if err != nil {
		return err
	}
	begun()
	c.ReportProgress("removing %s", m.host.Name())
	if err := by.jmx.exec(ctx, storageService, "removeNode", id); err != nil {
		return fmt.Errorf("removenode %s on %s: %w", id, by.host.Name(), err)
	}
	return nil
}

// checkDown returns nil when all members report that m is down.
func checkDown(ctx context.Context, m *member, members []*member) error {
	views, err := queryViews(ctx, members, false)
	if err != nil {
		return err
	}
	for _, v := range views {
		if slices.Contains(v.Live, m.host.Addr()) {
			return fmt.Errorf("%w: %s says that %s is up", database.ErrNotReady, v.member.host.Name(), m.host.Name())
		}
	}
	return nil
}

// errUnknownMember marks a member that another has not heard of.
var errUnknownMember = errors.New("unknown member")

func (m *member) findHostID(ctx context.Context, other *member) (string, error) {
	var v struct{ EndpointWithPortToHostId map[string]string }
	if err := m.jmx.read(ctx, storageService, &v, "EndpointWithPortToHostId"); err != nil {
		return "", fmt.Errorf("querying cassandra on %s: %w", m.host.Name(), err)
	}
	for endpoint, id := range v.EndpointWithPortToHostId {
		if endpointAddress(endpoint) == other.host.Addr() {
			return id, nil
		}
	}
	return "", fmt.Errorf("querying %s for the identity of %s: %w", m.host.Name(), other.host.Name(), errUnknownMember)
}

// drainTimeout bounds a drain: a member that cannot flush its memory is stopped all the same.
const drainTimeout = time.Minute

// Halt implements database.Cluster. A graceful halt is nodetool's drain and SIGTERM.
func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	return c.RunHalt(ctx, node, func(ctx context.Context, m *member) error {
		if manner == database.Graceful && !m.Halted() {
			drain, cancel := context.WithTimeout(ctx, drainTimeout)
			defer cancel()
			if err := m.jmx.exec(drain, storageService, "drain"); err != nil && ctx.Err() == nil {
				c.Log.Warn("drain failed, stopping the member all the same", "node", node.Name(), "error", err)
			}
		}
		return m.Halt(ctx, manner)
	})
}

func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	return c.RunRevive(ctx, node, func(ctx context.Context, m *member) error {
		if m.Running() {
			return nil
		}
		if seeds := c.seedAddresses(); len(seeds) > 0 {
			m.config.seeds = seeds
		}
		if err := c.launch(ctx, m, true); err != nil {
			return err
		}
		d := m.Server()
		if err := d.Await(ctx, c.options.start, withPacing(func(ctx context.Context) error { return c.checkAlive(ctx, m) })); err != nil {
			return errors.Join(err, m.Halt(ctx, database.Abrupt))
		}
		d.MarkMember()
		return nil
	})
}

// checkAlive returns nil when a member serves and it and the others that run see each other.
func (c *cluster) checkAlive(ctx context.Context, m *member) error {
	if err := m.checkServing(ctx); err != nil {
		return err
	}
	running := c.Select((*member).Running)
	views, err := queryViews(ctx, running, false)
	if err != nil {
		return err
	}
	for _, v := range views {
		for _, o := range running {
			if (v.member == m || o == m) && !slices.Contains(v.Live, o.host.Addr()) {
				return fmt.Errorf("%w: %s says that %s is down", database.ErrNotReady, v.member.host.Name(), o.host.Name())
			}
		}
	}
	return nil
}

// Upgrade implements database.UpgradableCluster: drain, stop, start, and the delivery of the writes
// that the member missed. A member of 5.0 writes files and messages that 4.1 reads, because
// storage_compatibility_mode is CASSANDRA_4 by default.
func (c *cluster) Upgrade(ctx context.Context, node host.Host, to database.Installation) (database.Change, error) {
	return c.RunUpgrade(ctx, c, node, to, nil, func(ctx context.Context, m *member) (string, error) {
		if err := c.awaitMember(ctx, m.Server(), c.checkHints); err != nil {
			return "", err
		}
		var v struct{ ReleaseVersion string }
		err := m.jmx.read(ctx, storageService, &v, "ReleaseVersion")
		return v.ReleaseVersion, err
	})
}

// checkHints returns nil if no member holds hints, or if a member is halted, whose hints stay.
// Members write hints to files every 10 s; newer hints are not seen.
func (c *cluster) checkHints(ctx context.Context) error {
	members := c.All()
	if slices.ContainsFunc(members, (*member).Halted) {
		return nil
	}
	for _, m := range members {
		var v struct{ PendingHints []map[string]string }
		if err := m.jmx.read(ctx, "org.apache.cassandra.hints:type=HintsService", &v, "PendingHints"); err != nil {
			return fmt.Errorf("querying cassandra on %s for its hints: %w", m.Name(), err)
		}
		if len(v.PendingHints) > 0 {
			return fmt.Errorf("%w: %s has hints for %d members", database.ErrNotReady, m.Name(), len(v.PendingHints))
		}
	}
	return nil
}
