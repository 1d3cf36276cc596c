package etcd

import (
	"context"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

// Halt implements database.Cluster. SIGTERM has a leader hand over first.
func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	return daemon.HaltMember(ctx, &c.MemberList, node.Name(), manner)
}

// Revive implements database.Cluster: it returns when a read that has to be agreed on
// succeeds at the member.
func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	run := func(ctx context.Context, m *member) error { return c.startProcess(ctx, m) }
	serves := func(ctx context.Context, m *member) error { return m.checkServing(ctx) }
	return daemon.ReviveMember(ctx, &c.MemberList, node.Name(), run, serves)
}
