package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

// isTemporary reports whether a failed change should be repeated. For 5 s after a member
// (re)connects, the others do not count it as healthy. A learner must catch up first. An address
// that was removed within the same second gets the same ID ("member not found").
func isTemporary(err error) bool {
	for _, e := range []error{rpctypes.ErrUnhealthy, rpctypes.ErrMemberNotEnoughStarted, rpctypes.ErrMemberLearnerNotReady,
		rpctypes.ErrMemberNotFound, rpctypes.ErrTooManyLearners, rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrNotLeader, rpctypes.ErrLeaderChanged} {
		if errors.Is(err, e) {
			return true
		}
	}
	// Without an answer the change may be committed; the next try finds out.
	return errors.Is(err, context.DeadlineExceeded) || grpcCode(err) == codes.DeadlineExceeded || grpcCode(err) == codes.Unavailable
}

func isFinal(err error) bool { return !isTemporary(err) }

// Join implements database.Cluster:
//
//	member add --learner   accepted: the cluster has agreed on it
//	start                  the learner fetches the data, without a vote
//	member promote         refused until it has caught up; then it has a vote
//	read                   complete: one that has to be agreed on succeeds there
//
// With option learner off it has a vote from the beginning.
func (c *cluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	var entry, m *member
	return c.RunJoin(ctx, node, daemon.JoinSteps{
		Timeout: daemon.ChangeTimeout,
		Check: func(ctx context.Context) (err error) {
			entry, err = c.findServing(ctx, nil)
			return err
		},
		Join: func(ctx context.Context, timer *daemon.ChangeTimer) (err error) {
			if m, err = c.addMember(node); err != nil {
				return err
			}
			peers, err := c.registerMember(ctx, entry, m)
			if err != nil {
				return err
			}
			timer.Accept()
			return c.startJoined(ctx, entry, m, peers)
		},
		Undo: func(ctx context.Context) error { return c.undoJoin(ctx, m) },
	})
}

func (c *cluster) registerMember(ctx context.Context, entry, m *member) (peers string, err error) {
	add := entry.admin.MemberAdd
	if c.options.learner {
		add = entry.admin.MemberAddAsLearner
	}
	own := c.options.peerURL(m.host)
	var list []string
	err = daemon.RetryChange(ctx, c.Servers.Await, isFinal, func(ctx context.Context) error {
		_, err := add(ctx, []string{own})
		if err != nil && !errors.Is(err, rpctypes.ErrPeerURLExist) { // that a try before has added it
			return err
		}
		answer, err := entry.admin.MemberList(ctx)
		if err != nil {
			return err
		}
		list = nil
		for _, other := range answer.Members {
			name := other.Name
			if slices.Contains(other.PeerURLs, own) {
				name = m.host.Name()
				m.id.Store(other.ID)
			}
			for _, u := range other.PeerURLs {
				list = append(list, name+"="+u)
			}
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("member add: %w", err)
	}
	return strings.Join(list, ","), nil
}

func (c *cluster) startJoined(ctx context.Context, entry, m *member, peers string) error {
	if err := c.startNew(ctx, m, stateExisting, peers); err != nil {
		return err
	}
	d := m.Server()
	d.MarkLeaving() // that it ends fails the join, not the cluster
	wait := func(ctx context.Context, ask func(context.Context) error) error {
		return d.Await(ctx, daemon.ChangeTimeout, ask)
	}
	if c.options.learner {
		if err := daemon.RetryChange(ctx, wait, isFinal, func(ctx context.Context) error {
			_, err := entry.admin.MemberPromote(ctx, m.id.Load())
			if errors.Is(err, rpctypes.ErrMemberNotLearner) { // a try before has promoted it
				return nil
			}
			return err
		}); err != nil {
			return fmt.Errorf("member promote: %w", err)
		}
	}
	if err := wait(ctx, m.checkServing); err != nil {
		return err
	}
	d.MarkMember()
	return nil
}

// undoJoin removes the member of a failed join. etcd may refuse that at first, see isTemporary.
func (c *cluster) undoJoin(ctx context.Context, m *member) error {
	if m == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 6*adminTimeout)
	defer cancel()
	halted := m.Halt(ctx, database.Abrupt)
	return errors.Join(halted, c.removeMember(ctx, m), c.dropMember(m))
}

// Leave implements database.Cluster:
//
//	move-leader     where it leads, so that no election is needed
//	member remove   accepted: the cluster has agreed on it
//	  wait          complete: no member lists it, its process has ended by itself
//
// Abrupt, its process is killed first.
func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (database.Change, error) {
	return daemon.LeaveQuorum(ctx, c.Cluster, node, manner, daemon.QuorumSteps[*member]{
		Check: c.checkLeave, Yield: c.yieldLeadership, Remove: c.removeMember, Forgotten: c.checkForgotten, Drop: c.dropMember,
	})
}

func (c *cluster) checkLeave(ctx context.Context, m *member, manner database.Manner) error {
	members := c.All()
	others := 0
	for _, o := range daemon.RunningExcept(members, m) {
		if s, err := o.queryStatus(ctx); err == nil && !s.IsLearner {
			others++
		}
	}
	return daemon.CheckLeave(members, m, manner, others)
}

func (c *cluster) yieldLeadership(ctx context.Context, m *member) error {
	s, err := m.queryStatus(ctx)
	if err != nil || s.Leader != m.id.Load() {
		return nil // one that does not answer need not hand anything over
	}
	other, err := c.findServing(ctx, m)
	if err != nil {
		return err
	}
	if err := moveLeader(ctx, m, other); err != nil && !isTemporary(err) {
		return err
	}
	return nil
}

// removeMember removes a member from the cluster. The leader may change between tries.
func (c *cluster) removeMember(ctx context.Context, m *member) error {
	if err := daemon.RetryChange(ctx, c.Servers.Await, isFinal, func(ctx context.Context) error {
		other, err := c.findServing(ctx, m)
		if err != nil {
			return err
		}
		there, err := findListed(ctx, other, c.options.peerURL(m.host))
		if err != nil || there == nil {
			return err
		}
		_, err = other.admin.MemberRemove(ctx, there.ID)
		return err
	}); err != nil {
		return fmt.Errorf("member remove: %w", err)
	}
	return nil
}

func (c *cluster) checkForgotten(ctx context.Context, m *member) error {
	for _, o := range daemon.RunningExcept(c.All(), m) {
		there, err := findListed(ctx, o, c.options.peerURL(m.host))
		if err != nil {
			return err
		}
		if there != nil {
			return fmt.Errorf("%s still lists %s", o.host.Name(), m.host.Name())
		}
		if err := o.checkServing(ctx); err != nil {
			return err
		}
	}
	return nil
}
