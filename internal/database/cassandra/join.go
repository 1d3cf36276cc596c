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

var errNoData = errors.New("the member joined without streaming data")

// Join implements database.Cluster. The node bootstraps:
//
//	start       with an empty directory
//	JOINING     accepted: the node and another member report it
//	  stream    the node receives the data of its tokens
//	NORMAL      complete: every member lists it as an owner, and it has received ranges of the table
func (c *cluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	return c.RunJoin(ctx, node, daemon.JoinSteps{
		Check: func(ctx context.Context) error {
			if !slices.Contains(c.centers, c.center(node)) {
				return fmt.Errorf("%w: there is no data centre %s, whose replicas would have to be made first", database.ErrUnsupported, node.Site())
			}
			return c.Ready(ctx)
		},
		Join: func(ctx context.Context, timer *daemon.ChangeTimer) error {
			m := c.newMember(node)
			m.config.bootstrap = true
			if err := m.wipe(ctx); err != nil {
				return err
			}
			if err := c.launch(ctx, m, true); err != nil {
				return err
			}
			if err := c.awaitBootstrap(ctx, m, timer); err != nil {
				return errors.Join(err, c.undoJoin(ctx, m))
			}
			m.Server().MarkMember()
			c.Add(m)
			if c.isSeed(node) {
				return c.settleSeeds(ctx)
			}
			return nil
		},
	})
}

func (c *cluster) awaitBootstrap(ctx context.Context, m *member, timer *daemon.ChangeTimer) error {
	d := m.Server()
	members := c.All()
	err := d.Await(ctx, c.options.start, withPacing(func(ctx context.Context) error { return checkJoining(ctx, m, members[0]) }))
	if err != nil {
		return err
	}
	timer.Accept()
	c.ReportProgress("data is moving to %s", m.host.Name())
	// How long that takes depends on the data: the caller's context bounds it.
	with := append(members, m)
	if err := c.awaitMember(ctx, d, func(ctx context.Context) error {
		views, err := queryViews(ctx, with, false)
		if err != nil {
			return err
		}
		return checkSettled(views)
	}); err != nil {
		return err
	}
	if err := c.checkBootstrap(ctx, m); err != nil {
		return err
	}
	timer.Complete()
	timer.Moved(m.streamedBytes(ctx, "TotalIncomingBytes"))
	return nil
}

// checkJoining returns nil once a new member reports that it joins and another member lists it.
func checkJoining(ctx context.Context, m, other *member) error {
	views, err := queryViews(ctx, []*member{m, other}, false)
	if err != nil {
		return err
	}
	addr := m.host.Addr()
	_, owner := views[1].Owners[addr]
	if views[0].Mode == modeNormal && owner || views[0].Mode == modeJoining && slices.Contains(views[1].Coming, addr) {
		return nil
	}
	return fmt.Errorf("%w: %s is %s", database.ErrNotReady, m.host.Name(), views[0].Mode)
}

func (c *cluster) checkBootstrap(ctx context.Context, m *member) error {
	s, err := c.openSession(m, "")
	if err != nil {
		return err
	}
	defer s.Close()
	var state string
	if err := s.Query("SELECT bootstrapped FROM system.local").ScanContext(ctx, &state); err != nil {
		return fmt.Errorf("querying cassandra on %s: %w", m.host.Name(), err)
	}
	if state != "COMPLETED" {
		return fmt.Errorf("%w: its bootstrap is %s", errNoData, state)
	}
	var full, transient [][]byte
	ranges := s.Query("SELECT full_ranges, transient_ranges FROM system.available_ranges_v2 WHERE keyspace_name = ?", defaultKeyspace)
	iter := ranges.IterContext(ctx)
	iter.Scan(&full, &transient)
	if err := iter.Close(); err != nil {
		return fmt.Errorf("querying cassandra on %s: %w", m.host.Name(), err)
	}
	if len(full) == 0 {
		return errNoData
	}
	return nil
}

// streamedBytes returns how many bytes a member has streamed since it started, 0 if unknown.
func (m *member) streamedBytes(ctx context.Context, counter string) int64 {
	var v struct{ Count int64 }
	if err := m.jmx.read(ctx, "org.apache.cassandra.metrics:type=Streaming,name="+counter, &v, "Count"); err != nil {
		return 0
	}
	return v.Count
}

const undoTimeout = 3 * time.Minute

// undoJoin kills a member whose join failed, removes it if it owns ranges, and waits until all others forget it.
func (c *cluster) undoJoin(ctx context.Context, m *member) error {
	name := m.host.Name()
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), undoTimeout,
		fmt.Errorf("the others have not forgotten %s after %v", name, undoTimeout))
	defer cancel()
	err := m.Server().Kill()
	if c.Err() != nil {
		return err // the cluster has failed: no member can answer
	}
	addr, owner := m.host.Addr(), false
	known := func(ctx context.Context) error {
		views, err := queryViews(ctx, c.All(), false)
		if err != nil {
			return err
		}
		alive := slices.ContainsFunc(views, func(v view) bool { return slices.Contains(v.Live, addr) || slices.Contains(v.Coming, addr) })
		owner = slices.ContainsFunc(views, func(v view) bool { _, is := v.Owners[addr]; return is })
		if alive {
			return fmt.Errorf("%w: members still know %s", database.ErrNotReady, name)
		}
		return nil
	}
	err = errors.Join(err, c.Servers.Await(ctx, withPacing(known)))
	if !owner {
		return err
	}
	err = errors.Join(err, c.removeDead(ctx, m, c.All(), func() {}))
	return errors.Join(err, c.awaitAgreement(ctx))
}
