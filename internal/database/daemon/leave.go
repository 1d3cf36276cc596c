package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/database"
)

// LeaveSteps are what a database does when a member leaves, in this order.
type LeaveSteps[M SeatedMember] struct {
	// MayGo refuses what would end the group.
	CheckLeave func(ctx context.Context, m M, manner database.Manner) error
	// Yield has a leader hand over, so that no election is needed. Nil where Remove does so.
	Yield func(ctx context.Context, m M) error
	// Remove has the group agree that m is no member any more.
	Remove func(ctx context.Context, m M) error
	// Forgotten is nil when no other member lists m, and all of them serve.
	Forgotten func(ctx context.Context, m M) error
	// Drop forgets m, whose process has ended.
	Drop func(m M) error
}

// Leave ends a membership:
//
//	yield, or SIGKILL when it goes abruptly
//	remove   accepted: the group has agreed on it
//	wait     complete: no member lists it, its process has ended by itself
//
// Servers are the group's.
func (s LeaveSteps[M]) Leave(ctx context.Context, servers *Set, m M, manner database.Manner) (change database.Change, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, ChangeTimeout, fmt.Errorf("not done after %v", ChangeTimeout))
	defer cancel()
	if err := s.CheckLeave(ctx, m, manner); err != nil {
		return change, err
	}
	began := time.Now()
	switch {
	case manner == database.Abrupt:
		err = m.Halt(ctx, manner)
	case s.Yield != nil:
		err = s.Yield(ctx, m)
	}
	if err != nil {
		return change, err
	}
	m.Server().Leaving()
	if err := s.Remove(ctx, m); err != nil {
		return change, err
	}
	change.Accepted = time.Since(began)
	if err := servers.Await(ctx, func(ctx context.Context) error { return s.Forgotten(ctx, m) }); err != nil {
		return change, err
	}
	if err := errors.Join(m.Server().AwaitEnd(ctx, leaveTimeout), s.Drop(m)); err != nil {
		return change, err
	}
	change.Complete = time.Since(began)
	return change, nil
}
