package daemon

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
)

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
	g, gctx := errgroup.WithContext(ctx)
	for i, m := range members {
		g.Go(func() (err error) {
			leaders[i], err = leader(gctx, m)
			return err
		})
	}
	if err := g.Wait(); err != nil {
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
