package daemon

import (
	"context"
	"fmt"

	"skerry/internal/database"
)

// HaltMember ends the server of the member on a node, which stays a member.
func HaltMember[M SeatedMember](ctx context.Context, members *MemberList[M], node string, manner database.Manner) error {
	m, release, err := members.Hold(node)
	if err != nil {
		return fmt.Errorf("halting %s: %w", node, err)
	}
	defer release()
	return m.Halt(ctx, manner)
}

// ReviveMember starts the server of the member on a node again with run, and returns when the
// member serves. One that runs is left as it is.
func ReviveMember[M SeatedMember](ctx context.Context, members *MemberList[M], node string, run, serves func(ctx context.Context, m M) error) error {
	m, release, err := members.Hold(node)
	if err != nil {
		return fmt.Errorf("reviving %s: %w", node, err)
	}
	defer release()
	if m.Server().Running() {
		return nil
	}
	if err := run(ctx, m); err != nil {
		return fmt.Errorf("reviving %s: %w", node, err)
	}
	err = m.Server().Await(ctx, ChangeTimeout, func(ctx context.Context) error { return serves(ctx, m) })
	if err != nil {
		return fmt.Errorf("reviving %s: %w", node, err)
	}
	return nil
}
