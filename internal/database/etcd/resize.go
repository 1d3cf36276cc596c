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

// notYet are answers to a change that may be asked for again: for 5 s after a member
// (re)connects the others do not count it as healthy, a learner catches up first, and an
// address that was removed within the same second gets the same ID ("member not found").
func notYet(err error) bool {
	for _, e := range []error{rpctypes.ErrUnhealthy, rpctypes.ErrMemberNotEnoughStarted, rpctypes.ErrMemberLearnerNotReady,
		rpctypes.ErrMemberNotFound, rpctypes.ErrTooManyLearners, rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrNotLeader, rpctypes.ErrLeaderChanged} {
		if errors.Is(err, e) {
			return true
		}
	}
	// No answer in time: it may have been agreed on, which the next try finds.
	return errors.Is(err, context.DeadlineExceeded) || code(err) == codes.DeadlineExceeded || code(err) == codes.Unavailable
}

// refused tells answers that no repetition changes.
func refused(err error) bool { return !notYet(err) }

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
			entry, err = c.serving(ctx, nil)
			return err
		},
		Join: func(ctx context.Context, timer *daemon.ChangeTimer) (err error) {
			if m, err = c.add(node); err != nil {
				return err
			}
			peers, err := c.register(ctx, entry, m)
			if err != nil {
				return err
			}
			timer.Accept()
			return c.takeIn(ctx, entry, m, peers)
		},
		Undo: func(ctx context.Context) error { return c.undoJoin(ctx, entry, m) },
	})
}

// register has the cluster agree on a new member and returns the list to start it with.
func (c *cluster) register(ctx context.Context, entry, m *member) (peers string, err error) {
	add := entry.admin.MemberAdd
	if c.options.learner {
		add = entry.admin.MemberAddAsLearner
	}
	own := c.options.peerURL(m.host)
	var list []string
	err = daemon.RetryChange(ctx, c.Servers.Await, refused, func(ctx context.Context) error {
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

// takeIn starts a member that the cluster has agreed on and gives it its vote.
func (c *cluster) takeIn(ctx context.Context, entry, m *member, peers string) error {
	if err := c.launch(ctx, m, stateExisting, peers); err != nil {
		return err
	}
	d := m.Server()
	d.MarkLeaving() // that it ends fails the join, not the cluster
	wait := func(ctx context.Context, ask func(context.Context) error) error {
		return d.Await(ctx, daemon.ChangeTimeout, ask)
	}
	if c.options.learner {
		if err := daemon.RetryChange(ctx, wait, refused, func(ctx context.Context) error {
			_, err := entry.admin.MemberPromote(ctx, m.id.Load())
			if errors.Is(err, rpctypes.ErrMemberNotLearner) { // a try before has promoted it
				return nil
			}
			return err
		}); err != nil {
			return fmt.Errorf("member promote: %w", err)
		}
	}
	if err := wait(ctx, m.serves); err != nil {
		return err
	}
	d.MarkMember()
	return nil
}

// undoJoin takes a member back that did not come to be one.
func (c *cluster) undoJoin(ctx context.Context, entry, m *member) error {
	if m == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*adminTimeout)
	defer cancel()
	errs := []error{m.Halt(ctx, database.Abrupt)}
	there, err := listed(ctx, entry, c.options.peerURL(m.host))
	if err == nil && there != nil {
		_, err = entry.admin.MemberRemove(ctx, there.ID)
	}
	return errors.Join(append(errs, err, c.drop(m))...)
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
		Check: c.checkLeave, Yield: c.yield, Remove: c.unregister, Forgotten: c.forgotten, Drop: c.drop,
	})
}

// checkLeave refuses what would leave the cluster without a majority.
func (c *cluster) checkLeave(ctx context.Context, m *member, manner database.Manner) error {
	members := c.All()
	others := 0
	for _, o := range daemon.RunningExcept(members, m) {
		if s, err := o.status(ctx); err == nil && !s.IsLearner {
			others++
		}
	}
	return daemon.CheckLeave(members, m, manner, others)
}

// yield has a leader hand over.
func (c *cluster) yield(ctx context.Context, m *member) error {
	s, err := m.status(ctx)
	if err != nil || s.Leader != m.id.Load() {
		return nil // one that does not answer need not hand anything over
	}
	other, err := c.serving(ctx, m)
	if err != nil {
		return err
	}
	if err := move(ctx, m, other); err != nil && !notYet(err) {
		return err
	}
	return nil
}

// unregister has the cluster agree that a member is none any more. Whoever leads may
// have changed since the last try.
func (c *cluster) unregister(ctx context.Context, m *member) error {
	if err := daemon.RetryChange(ctx, c.Servers.Await, refused, func(ctx context.Context) error {
		other, err := c.serving(ctx, m)
		if err != nil {
			return err
		}
		there, err := listed(ctx, other, c.options.peerURL(m.host))
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

// forgotten returns nil when no member that runs lists m, and they serve.
func (c *cluster) forgotten(ctx context.Context, m *member) error {
	for _, o := range daemon.RunningExcept(c.All(), m) {
		there, err := listed(ctx, o, c.options.peerURL(m.host))
		if err != nil {
			return err
		}
		if there != nil {
			return fmt.Errorf("%s still lists %s", o.host.Name(), m.host.Name())
		}
		if err := o.serves(ctx); err != nil {
			return err
		}
	}
	return nil
}
