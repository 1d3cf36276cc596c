package daemon

import (
	"context"
	"errors"
	"slices"
	"time"

	"skerry/internal/database"
)

const (
	// ChangeTimeout bounds a change of membership.
	ChangeTimeout = 5 * time.Minute
	// AskTimeout bounds one question to one member.
	QueryTimeout = 5 * time.Second
	// LeaveTimeout is what a member that was removed gets to notice and to end by itself.
	leaveTimeout = 5 * time.Second
)

// SeatedMember is a member of a group.
type SeatedMember interface {
	Member
	Server() *Daemon
	Halted() bool
	Halt(ctx context.Context, manner database.Manner) error
}

// RunningExcept are those of a group but for one, and without those that are halted.
func RunningExcept[M SeatedMember](all []M, but M) []M {
	return slices.DeleteFunc(slices.Clone(all), func(m M) bool { return m == but || m.Halted() })
}

// AwaitFunc asks until the answer is nil, or there is no sense in asking: Await of a Set or
// of a Daemon.
type AwaitFunc func(ctx context.Context, ask func(context.Context) error) error

// RetryChange asks for a change until it is granted, or refused with an error that is final:
// what was not done, or may have been, is asked again. To ask for what has been done must
// be no error.
func RetryChange(ctx context.Context, wait AwaitFunc, final func(error) bool, ask func(context.Context) error) error {
	var refused error
	err := wait(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, QueryTimeout)
		defer cancel()
		err := ask(ctx)
		if err != nil && final(err) {
			refused = err
			return nil
		}
		return err
	})
	return errors.Join(err, refused)
}
