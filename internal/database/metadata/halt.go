package metadata

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

// Halt implements database.Cluster, for all replicas of a node.
func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	replicas, unlock, err := c.HoldAll(node.Name())
	if err != nil {
		return fmt.Errorf("halting %s: %w", node.Name(), err)
	}
	defer unlock()
	g, gctx := errgroup.WithContext(ctx)
	for _, r := range replicas {
		g.Go(func() error { return r.Halt(gctx, manner) })
	}
	return g.Wait()
}

// Revive implements database.Cluster: it returns when a read that has to be agreed on
// succeeds at every replica of the node.
func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	replicas, unlock, err := c.HoldAll(node.Name())
	if err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	defer unlock()
	g, gctx := errgroup.WithContext(ctx)
	for _, r := range replicas {
		g.Go(func() error {
			if r.Server().Running() {
				return nil
			}
			if err := c.startProcess(gctx, r, false); err != nil {
				return err
			}
			return r.Server().Await(gctx, daemon.ChangeTimeout, r.checkServing)
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	return nil
}

// checkResizable is why a member of this cluster cannot join or leave.
func (c *cluster) checkResizable() error {
	if c.options.resizable() {
		return nil
	}
	return errors.Join(database.ErrUnsupported, errors.New("members join and leave where one server is a group of replicas"))
}
