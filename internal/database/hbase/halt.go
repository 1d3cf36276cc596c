package hbase

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

// Halt implements database.Cluster. In HBase's own way the RegionServer is told to end
// first: it writes back what it holds and closes its regions, which the master then
// places on others. The first node cannot be halted: nobody would be left to notice.
func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	_, release, err := c.Hold(node.Name())
	if err != nil {
		return fmt.Errorf("halting %s: %w", node.Name(), err)
	}
	defer release()
	if node.Name() == c.firstNode().Name() {
		return fmt.Errorf("halting %s: %w: %s", node.Name(), database.ErrFixed, anchorReason(c.options.storage))
	}
	c.setHalted(node, true)
	if manner == database.Abrupt {
		return c.killServers(node)
	}
	return errors.Join(c.stopRole(ctx, node, regionServer), c.stopRole(ctx, node, dataNode))
}

// Revive implements database.Cluster: the member's servers are known again, and it has
// its share of the regions.
func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	fail := func(err error) error { return fmt.Errorf("reviving %s: %w", node.Name(), err) }
	_, release, err := c.Hold(node.Name())
	if err != nil {
		return fail(err)
	}
	defer release()
	if !c.isHalted(node) {
		return fail(fmt.Errorf("%w, and not halted", database.ErrMember))
	}
	began := time.Now()
	if err := c.startMember(ctx, node, began); err != nil {
		return fail(errors.Join(err, c.killServers(node)))
	}
	c.setHalted(node, false)
	if err := c.awaitState(ctx, c.checkBalanced); err != nil {
		return fail(err)
	}
	return nil
}
