package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

// Halt implements database.Cluster: all servers of the node end, those that others need
// last.
func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	servers, unlock, err := c.HoldAll(node.Name())
	if err != nil {
		return fmt.Errorf("halting %s: %w", node.Name(), err)
	}
	defer unlock()
	slices.Reverse(servers)
	var errs []error
	for _, s := range servers {
		errs = append(errs, s.Halt(ctx, manner))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("halting %s: %w", node.Name(), err)
	}
	return nil
}

// Revive implements database.Cluster: it returns when the sets say of the node's members
// that they are primary or secondary again.
func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	servers, unlock, err := c.HoldAll(node.Name())
	if err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, changeTimeout, fmt.Errorf("not done after %v", changeTimeout))
	defer cancel()
	for _, s := range servers {
		if s.Running() {
			continue
		}
		if err := c.launch(ctx, s, false); err != nil {
			return fmt.Errorf("reviving %s: %w", node.Name(), err)
		}
	}
	for _, s := range servers {
		if s.set == "" {
			continue
		}
		if err := s.Server().Await(ctx, changeTimeout, func(ctx context.Context) error { return c.checkMember(ctx, s) }); err != nil {
			return fmt.Errorf("reviving %s: %w", node.Name(), err)
		}
	}
	return nil
}

// checkMember returns nil when a server's set says that it serves.
func (c *cluster) checkMember(ctx context.Context, s *server) error {
	st, err := c.readSetStatus(ctx, s.set)
	if err != nil {
		return err
	}
	for _, m := range st.Members {
		if m.Name == s.addr && m.Health == 1 && (m.State == statePrimary || m.State == stateSecondary) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s says of %s: %s", database.ErrNotReady, s.set, s.addr, st.memberState(s.addr))
}
