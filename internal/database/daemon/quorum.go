package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

const (
	// ChangeTimeout bounds a change of membership.
	ChangeTimeout = 5 * time.Minute
	// QueryTimeout bounds one query to one member.
	QueryTimeout = 5 * time.Second
	// leaveTimeout is the time for a removed member to detect its removal and to exit on its own.
	leaveTimeout = 5 * time.Second
)

// SeatedMember is a member with one server process, usually a type that embeds Seat.
type SeatedMember interface {
	Member
	Server() *Daemon
	Halted() bool
	Halt(ctx context.Context, manner database.Manner) error
}

// RunningExcept returns the members that are not halted, without one of them.
func RunningExcept[M SeatedMember](all []M, except M) []M {
	return slices.DeleteFunc(slices.Clone(all), func(m M) bool { return m == except || m.Halted() })
}

// ForEach runs do for all items at the same time, with their indexes, and returns the first error.
func ForEach[T any](ctx context.Context, items []T, do func(ctx context.Context, i int, item T) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for i, item := range items {
		g.Go(func() error { return do(ctx, i, item) })
	}
	return g.Wait()
}

// AwaitFunc polls until ask returns nil: Await of a Set, or of a Daemon with its timeout bound.
type AwaitFunc func(ctx context.Context, ask func(context.Context) error) error

// RetryChange repeats a change until it is granted or fails with a final error. Request must succeed if the
// change is already done.
func RetryChange(ctx context.Context, await AwaitFunc, final func(error) bool, request func(context.Context) error) error {
	var refused error
	err := await(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, QueryTimeout)
		defer cancel()
		err := request(ctx)
		if err != nil && final(err) {
			refused = err
			return nil
		}
		return err
	})
	return errors.Join(err, refused)
}

// QuorumSteps is how a member leaves a group with majority decisions. The steps run in this order.
type QuorumSteps[M SeatedMember] struct {
	// Check returns an error if the group would end without m.
	Check func(ctx context.Context, m M, manner database.Manner) error
	// Yield makes a leader hand over, so that no election is needed. It is nil if Remove does so.
	Yield func(ctx context.Context, m M) error
	// Remove has the group agree that m is no longer a member.
	Remove func(ctx context.Context, m M) error
	// Forgotten returns nil if no other member lists m and all of them serve.
	Forgotten func(ctx context.Context, m M) error
	// Drop removes m, whose process has ended, from the cluster.
	Drop func(m M) error
}

// LeaveQuorum implements database.Cluster's Leave:
//
//	yield, or SIGKILL if the member leaves abruptly
//	remove   accepted: the group has agreed
//	wait     complete: no member lists it, and its process has ended by itself
func LeaveQuorum[M SeatedMember](ctx context.Context, c *Cluster[M], node host.Host, manner database.Manner, s QuorumSteps[M]) (
	database.Change, error,
) {
	return c.RunLeave(ctx, node, LeaveSteps[M]{
		Timeout: ChangeTimeout,
		Check:   func(ctx context.Context, m M) error { return s.Check(ctx, m, manner) },
		Leave: func(ctx context.Context, m M, timer *ChangeTimer) (err error) {
			switch {
			case manner == database.Abrupt:
				err = m.Halt(ctx, manner)
			case s.Yield != nil:
				err = s.Yield(ctx, m)
			}
			if err != nil {
				return err
			}
			m.Server().MarkLeaving()
			if err := s.Remove(ctx, m); err != nil {
				return err
			}
			timer.Accept()
			if err := c.Servers.Await(ctx, func(ctx context.Context) error { return s.Forgotten(ctx, m) }); err != nil {
				return err
			}
			return errors.Join(m.Server().AwaitEnd(ctx, leaveTimeout), s.Drop(m))
		},
	})
}

// HaltMember ends the server of the member on a node, which stays a member.
func HaltMember[M SeatedMember](ctx context.Context, members *MemberList[M], node string, manner database.Manner) error {
	m, release, err := members.Hold(node)
	if err != nil {
		return fmt.Errorf("halting %s: %w", node, err)
	}
	defer release()
	return m.Halt(ctx, manner)
}

// ReviveMember starts the server of a halted member with run, and waits until it serves.
func ReviveMember[M SeatedMember](
	ctx context.Context, members *MemberList[M], node string, run, serves func(ctx context.Context, m M) error,
) error {
	m, release, err := members.Hold(node)
	if err != nil {
		return fmt.Errorf("reviving %s: %w", node, err)
	}
	defer release()
	if m.Server().Running() {
		return nil
	}
	if err = run(ctx, m); err == nil {
		err = m.Server().Await(ctx, ChangeTimeout, func(ctx context.Context) error { return serves(ctx, m) })
	}
	if err != nil {
		return fmt.Errorf("reviving %s: %w", node, err)
	}
	return nil
}

// Votes counts the votes of a group that a member wants to leave.
type Votes struct {
	All    int  // of all members
	Own    int  // of the leaving member, included in All
	Others int  // of the other members that serve
	Helps  bool // the leaving member serves until the group has agreed
}

// CheckLeave is Votes.Check for one vote per member. Others is the number of serving members without m.
func CheckLeave[M SeatedMember](all []M, m M, manner database.Manner, others int) error {
	return Votes{All: len(all), Own: 1, Others: others, Helps: manner == database.Graceful && !m.Halted()}.Check()
}

// Check returns an error that wraps database.ErrFixed if the group would lose its majority. Two
// majorities are needed: one of All agrees on the removal, and one of the remaining votes
// agrees on everything after it.
func (v Votes) Check() error {
	left := v.All - v.Own
	if left == 0 {
		return fmt.Errorf("%w: it is the last member", database.ErrFixed)
	}
	agree := v.Others
	if v.Helps {
		agree += v.Own
	}
	for _, need := range []struct{ have, of int }{{agree, v.All}, {v.Others, left}} {
		if 2*need.have <= need.of {
			return fmt.Errorf("%w: %d of %d votes would be left, which is not a majority", database.ErrFixed, need.have, need.of)
		}
	}
	return nil
}

// ReportMembers implements database.Cluster's Members: describe fills in each member's state, share and rows,
// concurrently. An empty state becomes "unreachable".
func ReportMembers[M Member](ctx context.Context, members []M, describe func(ctx context.Context, m M, into *database.Member) error) (
	[]database.Member, error,
) {
	list := make([]database.Member, len(members))
	g, gctx := errgroup.WithContext(ctx)
	for i, m := range members {
		list[i].Node = m.Name()
		g.Go(func() error {
			err := describe(gctx, m, &list[i])
			if list[i].State == "" {
				list[i].State = "unreachable"
			}
			return err
		})
	}
	return list, g.Wait()
}

// CheckLeader returns nil if every member serves and all name the same leader.
func CheckLeader[M Member, L comparable](ctx context.Context, members []M, leader func(ctx context.Context, m M) (L, error)) error {
	if len(members) == 0 {
		return fmt.Errorf("%w: there are no members", database.ErrNotReady)
	}
	leaders := make([]L, len(members))
	err := ForEach(ctx, members, func(ctx context.Context, i int, m M) (err error) {
		leaders[i], err = leader(ctx, m)
		return err
	})
	if err != nil {
		return err
	}
	for i, l := range leaders {
		if l != leaders[0] {
			return fmt.Errorf("%w: %s and %s name different leaders", database.ErrNotReady, members[i].Name(), members[0].Name())
		}
	}
	return nil
}

// Role is a member's part in a group that a leader heads.
type Role int

// Roles of members.
const (
	RoleNone Role = iota // a learner, a witness, or a member without a leader
	RoleFollower
	RoleLeader
)

// FindServing returns a member that answers questions about the group: the leader, else a follower.
func FindServing[M Member](ctx context.Context, members []M, role func(ctx context.Context, m M) (Role, error)) (found M, err error) {
	var none M
	err = fmt.Errorf("%w: no other member runs", database.ErrNotReady)
	for _, m := range members {
		r, failed := role(ctx, m)
		switch {
		case failed != nil:
			err = failed
		case r == RoleLeader:
			return m, nil
		case r == RoleFollower:
			found = m
		}
	}
	if found != none {
		return found, nil
	}
	return none, err
}
