package etcd

import (
	"context"
	"fmt"

	"skerry/internal/database"
	"skerry/internal/host"
)

// Halt implements database.Cluster. SIGTERM has a leader hand over first.
func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	m, unlock, err := c.hold(node)
	if err != nil {
		return fmt.Errorf("halting %s: %w", node.Name(), err)
	}
	defer unlock()
	if m.halted.Load() {
		return nil
	}
	m.halted.Store(true)
	if manner == database.Abrupt {
		return m.server.Load().Kill()
	}
	return m.server.Load().Stop(ctx)
}

// Revive implements database.Cluster: it returns when a read that has to be agreed on
// succeeds at the member.
func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	m, unlock, err := c.hold(node)
	if err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	defer unlock()
	if m.server.Load().Running() {
		return nil
	}
	if err := c.run(ctx, m); err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	if err := m.server.Load().Await(ctx, changeTimeout, m.serves); err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	return nil
}

// hold finds a member and keeps others from changing it.
func (c *cluster) hold(node host.Host) (*member, func(), error) {
	if !c.changing.TryLock() {
		return nil, nil, database.ErrBusy
	}
	m := c.members.On(node.Name())
	if m == nil {
		c.changing.Unlock()
		return nil, nil, database.ErrNotMember
	}
	return m, c.changing.Unlock, nil
}
