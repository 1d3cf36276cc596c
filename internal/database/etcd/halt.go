package etcd

import (
	"context"
	"fmt"

	"skerry/internal/database"
	"skerry/internal/database/quorum"
	"skerry/internal/host"
)

// Halt implements database.Cluster. SIGTERM has a leader hand over first.
func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	m, release, err := c.members.Hold(node.Name())
	if err != nil {
		return fmt.Errorf("halting %s: %w", node.Name(), err)
	}
	defer release()
	return m.Halt(ctx, manner)
}

// Revive implements database.Cluster: it returns when a read that has to be agreed on
// succeeds at the member.
func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	m, release, err := c.members.Hold(node.Name())
	if err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	defer release()
	if m.Server().Running() {
		return nil
	}
	if err := c.run(ctx, m); err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	if err := m.Server().Await(ctx, quorum.ChangeTimeout, m.serves); err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	return nil
}
