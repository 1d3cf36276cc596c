// Package quorum is how members join and leave a group that agrees on its members by
// majority: Raft's and its like, where a change is asked for until the group has agreed on
// it, and none may take the majority away that agrees on the next one.
package quorum

import (
	"context"
	"errors"
	"slices"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
)

const (
	// ChangeTimeout bounds a change of membership.
	ChangeTimeout = 5 * time.Minute
	// AskTimeout bounds one question to one member.
	AskTimeout = 5 * time.Second
	// LeaveTimeout is what a member that was removed gets to notice and to end by itself.
	LeaveTimeout = 5 * time.Second
)

// Member is a member of a group.
type Member interface {
	daemon.Member
	Server() *daemon.Daemon
	Halted() bool
	Halt(ctx context.Context, manner database.Manner) error
}

// Running are those of a group but for one, and without those that are halted.
func Running[M Member](all []M, but M) []M {
	return slices.DeleteFunc(slices.Clone(all), func(m M) bool { return m == but || m.Halted() })
}

// Wait asks until the answer is nil, or there is no sense in asking: Await of a daemon.Set or
// of a daemon.Daemon.
type Wait func(ctx context.Context, ask func(context.Context) error) error

// Persist asks for a change until it is granted, or refused with an error that is final:
// what was not done, or may have been, is asked again. To ask for what has been done must
// be no error.
func Persist(ctx context.Context, wait Wait, final func(error) bool, ask func(context.Context) error) error {
	var refused error
	err := wait(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, AskTimeout)
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
