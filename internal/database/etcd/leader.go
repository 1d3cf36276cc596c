package etcd

import (
	"context"
	"fmt"

	"skerry/internal/database"
)

// ensureLeader has the member lead that was asked for, and returns when all members agree that it
// does. An election may give the cluster another leader later.
func (c *cluster) ensureLeader(ctx context.Context) error {
	if c.options.leader == "" {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("%s did not become etcd's leader in %v", c.options.leader, readyTimeout))
	defer cancel()
	to := c.On(c.options.leader)
	if to == nil {
		return fmt.Errorf("%s is to lead: %w", c.options.leader, database.ErrNotMember)
	}
	return c.Servers.Await(ctx, func(ctx context.Context) error {
		s, err := to.queryStatus(ctx)
		if err != nil {
			return err
		}
		if raftRole(s) == "leader" {
			return c.Ready(ctx)
		}
		from, err := c.findServing(ctx, nil)
		if err != nil {
			return err
		}
		if err := moveLeader(ctx, from, to); err != nil {
			return err
		}
		return fmt.Errorf("%w: %s does not lead yet", database.ErrNotReady, to.host.Name())
	})
}

// moveLeader has one member hand the leadership over to another.
func moveLeader(ctx context.Context, from, to *member) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	if _, err := from.admin.MoveLeader(ctx, to.id.Load()); err != nil {
		return fmt.Errorf("moving the leadership from %s to %s: %w", from.host.Name(), to.host.Name(), err)
	}
	return nil
}
