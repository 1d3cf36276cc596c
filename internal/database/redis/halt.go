package redis

import (
	"context"
	"fmt"

	"skerry/internal/database"
	"skerry/internal/host"
)

// Halt implements database.Cluster.
func (c *cluster) Halt(_ context.Context, node host.Host, _ database.Manner) error {
	return fmt.Errorf("halting %s: %w", node.Name(), database.ErrUnsupported)
}

// Revive implements database.Cluster.
func (c *cluster) Revive(_ context.Context, node host.Host) error {
	return fmt.Errorf("reviving %s: %w", node.Name(), database.ErrUnsupported)
}
