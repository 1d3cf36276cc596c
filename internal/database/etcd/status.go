package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/load"
	"skerry/internal/machine/host"
)

// Ready implements database.Cluster: every member names the same leader and serves a linearizable read.
func (c *cluster) Ready(ctx context.Context) error {
	return daemon.CheckLeader(ctx, c.All(), func(ctx context.Context, m *member) (uint64, error) {
		s, err := m.queryStatus(ctx)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", database.ErrNotReady, err)
		}
		if s.Leader == 0 {
			return 0, fmt.Errorf("%w: %s knows no leader", database.ErrNotReady, m.Name())
		}
		return s.Leader, m.checkServing(ctx)
	})
}

// Members implements database.Cluster: a state is leader, follower, learner or unreachable.
func (c *cluster) Members(ctx context.Context) ([]database.Member, error) {
	return daemon.ReportMembers(ctx, c.All(), func(ctx context.Context, m *member, into *database.Member) error {
		s, err := m.queryStatus(ctx)
		if err != nil {
			return ctx.Err() // its state is unreachable
		}
		into.State, into.Share = raftRole(s), 1
		got, err := m.admin.Get(ctx, recordKey("", ""), clientv3.WithRange(tableEnd("")), clientv3.WithCountOnly(), clientv3.WithSerializable())
		if err != nil {
			return fmt.Errorf("counting the rows of etcd on %s: %w", m.Name(), err)
		}
		into.Rows = got.Count
		return nil
	})
}

func raftRole(s *clientv3.StatusResponse) string {
	switch {
	case s.IsLearner:
		return "learner"
	case s.Leader == s.Header.MemberId:
		return "leader"
	case s.Leader == 0:
		return "no leader"
	}
	return "follower"
}

// findServing returns an answering member other than but, preferably the leader.
func (c *cluster) findServing(ctx context.Context, without *member) (*member, error) {
	return daemon.FindServing(ctx, daemon.RunningExcept(c.All(), without), func(ctx context.Context, m *member) (daemon.Role, error) {
		s, err := m.queryStatus(ctx)
		switch {
		case err != nil:
			return daemon.RoleNone, err
		case raftRole(s) == "leader":
			return daemon.RoleLeader, nil
		case raftRole(s) == "follower":
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
	got, err := m.admin.Get(ctx, recordKey("", ""), clientv3.WithRange(tableEnd("")), clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("counting rows: querying etcd on %s: %w", m.host.Name(), err)
	}
	return got.Count, nil
}

// Clear implements database.Cluster. It also compacts: etcd keeps every version in its index,
// which would grow to gigabytes over the trials of a reused cluster. If another member was
// elected, the configured leader takes over again.
func (c *cluster) Clear(ctx context.Context) error {
	m, err := c.findServing(ctx, nil)
	if err != nil {
		return fmt.Errorf("clearing the table: %w", err)
	}
	fail := func(err error) error {
		return fmt.Errorf("clearing the table: querying etcd on %s: %w", m.host.Name(), err)
	}
	deleted, err := m.admin.Delete(ctx, recordKey("", ""), clientv3.WithRange(tableEnd("")))
	if err != nil {
		return fail(err)
	}
	// Another client may have compacted further.
	if _, err := m.admin.Compact(ctx, deleted.Header.Revision, clientv3.WithCompactPhysical()); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fail(err)
	}
	return c.ensureLeader(ctx)
}

// OpenMember implements database.Replicated: reads are the member's own.
func (c *cluster) OpenMember(ctx context.Context, node string) (load.Client, error) {
	m := c.On(node)
	if m == nil {
		return nil, fmt.Errorf("reading the copy of %s: %w", node, database.ErrNotMember)
	}
	one := newClient(ctx, settings{serializable: true, timeout: defaultTimeout}, host.Dialer(m.host, adminTimeout))
	one.singleMember, one.addrs, one.conns = true, []string{m.addr}, make([]*clientv3.Client, 1)
	return one, nil
}

// findListed returns the entry of a member in the cluster's list, nil if it is not listed.
func findListed(ctx context.Context, from *member, peerURL string) (*etcdserverpb.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	list, err := from.admin.MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("querying etcd on %s for the members: %w", from.host.Name(), err)
	}
	for _, m := range list.Members {
		if slices.Contains(m.PeerURLs, peerURL) {
			return m, nil
		}
	}
	return nil, nil
}
