package metadata

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"golang.org/x/sync/errgroup"

	vocab "skerry/systems/metadata"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
)

// Ready implements database.Cluster: every replica serves a read, those of a group name the same leader, and all
// areas can be reached through one.
func (c *cluster) Ready(ctx context.Context) error {
	all := c.All()
	if len(all) == 0 {
		return fmt.Errorf("%w: there are no servers", database.ErrNotReady)
	}
	leaders := make([]uint64, len(all))
	g, gctx := errgroup.WithContext(ctx)
	for i, r := range all {
		g.Go(func() error {
			if err := r.checkServing(gctx); err != nil {
				return err
			}
			s, err := r.queryStatus(gctx)
			if err == nil && s.Group != nil {
				leaders[i] = s.Group.Leader
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, r := range all {
		first := slices.IndexFunc(all, func(o *replica) bool { return o.server == r.server })
		if leaders[i] != leaders[first] {
			return fmt.Errorf("%w: %s and %s name different leaders", database.ErrNotReady, r.host.Name(), all[first].host.Name())
		}
	}
	for _, area := range c.areaPaths() {
		if _, err := runCommand(ctx, all[0].admin, vocab.Command{Op: vocab.Stat, Path: area}); err != nil {
			return fmt.Errorf("%w: %w", database.ErrNotReady, err)
		}
	}
	return nil
}

// Members implements database.Cluster: a state is the Raft state of the node's own server, alone or unreachable.
func (c *cluster) Members(ctx context.Context) ([]database.Member, error) {
	var list []database.Member
	var firsts []*replica
	for _, r := range c.All() {
		i := slices.IndexFunc(list, func(m database.Member) bool { return m.Node == r.host.Name() })
		if i < 0 {
			i = len(list)
			list, firsts = append(list, database.Member{Node: r.host.Name(), State: "unreachable"}), append(firsts, r)
		}
		list[i].Share += 1 / float64(len(c.layout))
	}
	g, gctx := errgroup.WithContext(ctx)
	for i, r := range firsts {
		g.Go(func() error {
			s, err := r.queryStatus(gctx)
			if err != nil {
				return ctx.Err() // that it does not answer is what was asked
			}
			list[i].State = "alone"
			if s.Group != nil {
				list[i].State = s.Group.State
			}
			if r.server != c.layout[0].name {
				return nil
			}
			list[i].Rows, err = countRows(gctx, r)
			if err != nil && !errors.Is(err, vocab.ErrUnavailable) {
				return fmt.Errorf("counting the rows on %s: %w", r.host.Name(), err)
			}
			return nil
		})
	}
	return list, g.Wait()
}

func countRows(ctx context.Context, r *replica) (int64, error) {
	result, err := runCommand(ctx, r.admin, vocab.Command{Op: vocab.Stat, Path: tableDir("")})
	if errors.Is(err, vocab.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return result.Entries[0].Size, nil
}

// findServing returns a serving replica of the root's server, never the excluded one.
func (c *cluster) findServing(ctx context.Context, without *replica) (*replica, error) {
	return daemon.FindServing(ctx, daemon.RunningExcept(c.All(), without), func(ctx context.Context, r *replica) (daemon.Role, error) {
		if r.server != c.layout[0].name || r.Server() == nil {
			return daemon.RoleNone, nil
		}
		s, err := r.queryStatus(ctx)
		if err == nil && (s.Group == nil || s.Group.Leader != 0) {
			return daemon.RoleLeader, nil // the first that serves is as good as any
		}
		return daemon.RoleNone, err
	})
}

// Count implements database.Cluster: records of the table, and files of the areas.
func (c *cluster) Count(ctx context.Context) (int64, error) {
	r, err := c.findServing(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	n, err := countRows(ctx, r)
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	for _, area := range c.areaPaths() {
		files := vocab.Command{Op: vocab.Find, Path: area, Kind: vocab.File, MaxDepth: -1, Limit: vocab.MaxLimit}
		for {
			page, err := runCommand(ctx, r.admin, files)
			if err != nil {
				return 0, fmt.Errorf("counting files: %w", err)
			}
			n += int64(len(page.Entries))
			if files.After = page.Next; files.After == "" {
				break
			}
		}
	}
	return n, nil
}

// Clear implements database.Cluster: the table is emptied, and the areas.
func (c *cluster) Clear(ctx context.Context) error {
	r, err := c.findServing(ctx, nil)
	if err != nil {
		return fmt.Errorf("clearing the table: %w", err)
	}
	err = removeTree(ctx, r, tableDir(""))
	if err == nil {
		_, err = runCommand(ctx, r.admin, vocab.Command{Op: vocab.Mkdir, Path: tableDir(""), Parents: true})
	}
	if err != nil {
		return fmt.Errorf("clearing the table: %w", err)
	}
	for _, area := range c.areaPaths() {
		list := vocab.Command{Op: vocab.List, Path: area, Limit: vocab.MaxLimit}
		for {
			page, err := runCommand(ctx, r.admin, list)
			for i := 0; i < len(page.Entries) && err == nil; i++ {
				err = removeTree(ctx, r, path.Join(area, page.Entries[i].Name))
			}
			if err != nil {
				return fmt.Errorf("emptying %s: %w", area, err)
			}
			if page.Next == "" {
				break
			}
		}
	}
	return nil
}

// removeTree removes a file or a directory tree. A missing one is no error.
func removeTree(ctx context.Context, r *replica, at string) error {
	_, err := runCommand(ctx, r.admin, vocab.Command{Op: vocab.Remove, Path: at, Recursive: true})
	if errors.Is(err, vocab.ErrNotFound) {
		return nil
	}
	return err
}
