package hydra

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/hydraclient"
)

// Ready implements database.Cluster: every member names the same leader and answers a
// read that has to be agreed on.
func (c *cluster) Ready(ctx context.Context) error {
	members := c.All()
	if len(members) == 0 {
		return fmt.Errorf("%w: it has no members", database.ErrNotReady)
	}
	leaders := make([]string, len(members))
	g, gctx := errgroup.WithContext(ctx)
	for i, m := range members {
		g.Go(func() error {
			if err := m.serves(gctx); err != nil {
				return err
			}
			s, err := m.status(gctx)
			leaders[i] = s.Leader
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, l := range leaders {
		if l != leaders[0] {
			return fmt.Errorf("%w: %s and %s name different leaders", database.ErrNotReady, members[i].host.Name(), members[0].host.Name())
		}
	}
	return nil
}

// Members implements database.Cluster: a state is Raft's role, witness or unreachable.
func (c *cluster) Members(ctx context.Context) ([]database.Member, error) {
	members := c.All()
	list := make([]database.Member, len(members))
	g, gctx := errgroup.WithContext(ctx)
	for i, m := range members {
		list[i] = database.Member{Node: m.host.Name(), State: "unreachable"}
		g.Go(func() error {
			s, err := m.status(gctx)
			if err != nil {
				return ctx.Err() // that it does not answer is what was asked
			}
			list[i].State = s.Role
			if m.witness {
				list[i].State = "witness"
				return nil
			}
			list[i].Share = 1
			n, err := m.admin.Count(gctx, c.tables()[0], hydraclient.Read(api.Local))
			if err != nil && !errors.Is(err, hydraclient.ErrUnknownTable) {
				return fmt.Errorf("counting the rows of hydra on %s: %w", m.host.Name(), err)
			}
			list[i].Rows = n
			return nil
		})
	}
	return list, g.Wait()
}

// serving is a member that answers, for questions to the cluster: the leader when one
// is known, and never one that is left out or a witness.
func (c *cluster) serving(ctx context.Context, without *member) (*member, error) {
	var found *member
	err := fmt.Errorf("%w: no other member runs", database.ErrNotReady)
	for _, m := range daemon.RunningExcept(c.All(), without) {
		if m.witness || m.Server() == nil {
			continue
		}
		s, failed := m.status(ctx)
		switch {
		case failed != nil:
			err = failed
		case s.Leader == m.host.Name():
			return m, nil
		case s.Leader != "" && s.Role != "learner" && s.Problem == "":
			found = m
		}
	}
	if found != nil {
		return found, nil
	}
	return nil, err
}

// Count implements database.Cluster.
func (c *cluster) Count(ctx context.Context) (int64, error) {
	m, err := c.serving(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	n, err := c.rows(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("counting rows: asking hydra on %s: %w", m.host.Name(), err)
	}
	return n, nil
}

// Clear implements database.Cluster.
func (c *cluster) Clear(ctx context.Context) error {
	m, err := c.serving(ctx, nil)
	if err != nil {
		return fmt.Errorf("emptying the table: %w", err)
	}
	for _, table := range c.tables() {
		if err := m.admin.ClearTable(ctx, table, hydraclient.Ack(api.Applied)); err != nil {
			return fmt.Errorf("emptying the table: asking hydra on %s: %w", m.host.Name(), err)
		}
	}
	return nil
}
