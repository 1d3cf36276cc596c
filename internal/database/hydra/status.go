package hydra

import (
	"context"
	"errors"
	"fmt"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/hydraclient"
)

// Ready implements database.Cluster: every member names the same leader and answers a
// read that has to be agreed on.
func (c *cluster) Ready(ctx context.Context) error {
	return daemon.CheckLeader(ctx, c.All(), func(ctx context.Context, m *member) (string, error) {
		if err := m.checkServing(ctx); err != nil {
			return "", err
		}
		s, err := m.queryStatus(ctx)
		return s.Leader, err
	})
}

// Members implements database.Cluster: a state is Raft's role, witness or unreachable.
func (c *cluster) Members(ctx context.Context) ([]database.Member, error) {
	return daemon.ReportMembers(ctx, c.All(), func(ctx context.Context, m *member, into *database.Member) error {
		s, err := m.queryStatus(ctx)
		if err != nil {
			return ctx.Err() // its state is unreachable
		}
		if into.State = s.Role; m.witness {
			into.State = "witness"
			return nil
		}
		into.Share = 1
		n, err := m.admin.Count(ctx, c.tableNames()[0], hydraclient.Read(api.Local))
		if err != nil && !errors.Is(err, hydraclient.ErrUnknownTable) {
			return fmt.Errorf("counting the rows of hydra on %s: %w", m.Name(), err)
		}
		into.Rows = n
		return nil
	})
}

// findServing is a member that answers, for questions to the cluster: the leader when one
// is known, and never one that is left out or a witness.
func (c *cluster) findServing(ctx context.Context, without *member) (*member, error) {
	return daemon.FindServing(ctx, daemon.RunningExcept(c.All(), without), func(ctx context.Context, m *member) (daemon.Role, error) {
		if m.witness || m.Server() == nil {
			return daemon.RoleNone, nil
		}
		s, err := m.queryStatus(ctx)
		switch {
		case err != nil:
			return daemon.RoleNone, err
		case s.Leader == m.Name():
			return daemon.RoleLeader, nil
		case s.Leader != "" && s.Role != "learner" && s.Problem == "":
			return daemon.RoleFollower, nil
		}
		return daemon.RoleNone, nil
	})
}

// Count implements database.Cluster.
func (c *cluster) Count(ctx context.Context) (int64, error) {
	m, err := c.findServing(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	n, err := c.countRows(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("counting rows: asking hydra on %s: %w", m.host.Name(), err)
	}
	return n, nil
}

// Clear implements database.Cluster.
func (c *cluster) Clear(ctx context.Context) error {
	m, err := c.findServing(ctx, nil)
	if err != nil {
		return fmt.Errorf("emptying the table: %w", err)
	}
	for _, table := range c.tableNames() {
		if err := m.admin.ClearTable(ctx, table, hydraclient.Ack(api.Applied)); err != nil {
			return fmt.Errorf("emptying the table: asking hydra on %s: %w", m.host.Name(), err)
		}
	}
	return nil
}
