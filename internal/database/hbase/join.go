package hbase

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

// Join implements database.Cluster:
//
//	start     accepted: NameNode and master list the new DataNode and RegionServer
//	balance   complete: members differ by at most one region, and none is in transition
func (c *cluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	var change database.Change
	fail := func(err error) (database.Change, error) {
		return change, fmt.Errorf("joining %s: %w", node.Name(), err)
	}
	release, err := c.Vacant(node.Name())
	if err != nil {
		return fail(err)
	}
	defer release()
	if err := c.Ready(ctx); err != nil {
		return fail(err)
	}
	c.ReportProgress("%s is joining", node.Name())
	began := time.Now()
	if err := c.admitNode(ctx, node, began); err != nil {
		return fail(errors.Join(err, c.killServers(node)))
	}
	change.Accepted = time.Since(began)
	c.Add(node)
	c.ReportProgress("moving regions to %s", node.Name())
	if err := c.awaitState(ctx, c.checkBalanced); err != nil {
		return fail(fmt.Errorf("%w; it stays a member", err))
	}
	change.Complete = time.Since(began)
	return change, nil
}

func (c *cluster) admitNode(ctx context.Context, node host.Host, began time.Time) error {
	if err := c.prepare(ctx, node); err != nil {
		return err
	}
	if err := c.setExcluded(ctx, node, false); err != nil {
		return err
	}
	return c.startMember(ctx, node, began)
}

// startMember starts a node's servers and returns when master and NameNode list them.
func (c *cluster) startMember(ctx context.Context, node host.Host, began time.Time) error {
	servers, err := c.startServers(ctx, node, true)
	if err != nil {
		return err
	}
	return c.awaitListed(ctx, node, began, servers)
}

// awaitListed returns when master and NameNode list a node's servers, which began to start after began.
func (c *cluster) awaitListed(ctx context.Context, node host.Host, began time.Time, servers []*daemon.Daemon) error {
	if err := c.awaitState(ctx, func(ctx context.Context) error { return c.checkListed(ctx, node, began) }, servers...); err != nil {
		return err
	}
	var errs []error
	for _, d := range servers {
		errs = append(errs, d.ConfirmMember())
	}
	return errors.Join(errs...)
}

// checkListed returns nil when master and NameNode list servers of the node that started after since.
func (c *cluster) checkListed(ctx context.Context, node host.Host, since time.Time) error {
	s, err := c.admin.queryState(ctx)
	if err != nil {
		return err
	}
	if server := serverOn(s.live, node.Addr()); serverStart(server) < since.UnixMilli() {
		return fmt.Errorf("%w: the master does not know the RegionServer on %s", database.ErrNotReady, node.Name())
	}
	if c.options.storage != storageHDFS {
		return nil
	}
	nodes, err := c.admin.queryDataNodes(ctx)
	if err != nil {
		return err
	}
	if d := nodes[c.dataNodeAddr(node)]; !d.live || d.heard < since.UnixMilli() {
		return fmt.Errorf("%w: the NameNode does not know the DataNode on %s", database.ErrNotReady, node.Name())
	}
	return nil
}

func (c *cluster) killServers(node host.Host) error {
	var errs []error
	for _, d := range c.Servers.RunningOn(node.Name()) {
		errs = append(errs, d.Kill())
	}
	return errors.Join(errs...)
}

// Halt implements database.Cluster. Gracefully, the RegionServer ends first: it flushes and closes its regions,
// which the master moves. The first node cannot be halted: no process would be left to notice.
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

// Revive implements database.Cluster. It returns when the member is listed and has its share of regions.
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
