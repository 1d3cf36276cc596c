package hbase

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// Leave implements database.Cluster. A serving member:
//
//	decommission   accepted: the master moves its regions away, the NameNode copies its blocks
//	  wait         until it has no regions and is DECOMMISSIONED
//	stop           complete: its logs are archived, no region is in transition, regions are balanced
//
// A lost member, whose processes are killed:
//
//	wait         accepted: its session with ZooKeeper has expired
//	wait         complete: its logs are split, the others serve its regions, and every block has all its copies
//	             on them; open logs are rolled for that
func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (database.Change, error) {
	return c.RunLeave(ctx, node, daemon.LeaveSteps[host.Host]{
		Check: func(_ context.Context, node host.Host) error { return c.checkLeave(node, manner) },
		Leave: func(ctx context.Context, node host.Host, timer *daemon.ChangeTimer) error {
			if manner == database.Abrupt {
				return c.removeLost(ctx, node, timer.Accept)
			}
			if err := c.Ready(ctx); err != nil {
				return err
			}
			return c.decommission(ctx, node, timer.Accept)
		},
	})
}

// checkLeave refuses to remove the first node, a member that HDFS needs for its replication, or, gracefully, a
// halted member.
func (c *cluster) checkLeave(node host.Host, manner database.Manner) error {
	if node.Name() == c.firstNode().Name() {
		return fmt.Errorf("%w: %s", database.ErrFixed, anchorReason(c.options.storage))
	}
	others := slices.DeleteFunc(c.activeMembers(), func(h host.Host) bool { return h.Name() == node.Name() })
	if c.options.storage == storageHDFS && len(others) < c.options.replication {
		return fmt.Errorf("%w: replication %d needs as many DataNodes, %d would be left", database.ErrFixed, c.options.replication, len(others))
	}
	if manner == database.Graceful && c.isHalted(node) {
		return fmt.Errorf("%w: it is halted, and can leave abruptly alone", database.ErrUnsupported)
	}
	return nil
}

func (c *cluster) decommission(ctx context.Context, node host.Host, accepted func()) error {
	s, err := c.admin.queryState(ctx)
	if err != nil {
		return err
	}
	server := serverOn(s.live, node.Addr())
	if _, err := c.admin.query(ctx, "decommission", server); err != nil {
		return err
	}
	if err := c.setExcluded(ctx, node, true); err != nil {
		return err
	}
	accepted()
	if err := c.awaitState(ctx, func(ctx context.Context) error { return c.checkDrained(ctx, server) }); err != nil {
		return err
	}
	c.forgetMember(node)
	if err := c.stopRole(ctx, node, regionServer); err != nil {
		return err
	}
	if c.options.storage == storageHDFS {
		if err := c.releaseBlocks(ctx, node, server, s.live); err != nil {
			return err
		}
	}
	if err := c.awaitState(ctx, func(ctx context.Context) error { return c.checkRecovered(ctx, server) }); err != nil {
		return err
	}
	return c.awaitState(ctx, c.checkBalanced)
}

func (c *cluster) checkDrained(ctx context.Context, server string) error {
	n, err := c.admin.queryNumber(ctx, "regions", server)
	if err == nil && n > 0 {
		err = fmt.Errorf("%w: %s has %d regions", database.ErrNotReady, server, n)
	}
	return err
}

func (c *cluster) stopRole(ctx context.Context, node host.Host, r role) error {
	for _, d := range c.Servers.RunningOn(node.Name()) {
		if d.Name() == r.name {
			return d.Stop(ctx)
		}
	}
	return nil
}

// checkRecovered returns nil when a removed server's logs are split or archived, and others serve its regions.
func (c *cluster) checkRecovered(ctx context.Context, server string) error {
	s, err := c.admin.queryState(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(s.live, server) {
		return fmt.Errorf("%w: the master has not noticed the end of %s", database.ErrNotReady, server)
	}
	if n := len(s.transition); n > 0 {
		return fmt.Errorf("%w: %d regions are in transition", database.ErrNotReady, n)
	}
	logs, err := c.admin.query(ctx, "logs")
	if err != nil {
		return err
	}
	if slices.ContainsFunc(logs, func(l string) bool { return strings.HasPrefix(l, server) }) {
		return fmt.Errorf("%w: the write-ahead logs of %s are not split", database.ErrNotReady, server)
	}
	places, err := c.admin.queryNumbers(ctx, "places", table)
	if err == nil && places[server] > 0 {
		err = fmt.Errorf("%w: %d regions are placed on %s", database.ErrNotReady, places[server], server)
	}
	return err
}

func (c *cluster) removeLost(ctx context.Context, node host.Host, accepted func()) error {
	server, err := c.lastServer(ctx, node)
	if err != nil {
		return err
	}
	c.forgetMember(node)
	if err := c.killServers(node); err != nil {
		return err
	}
	if server != "" {
		err := c.awaitState(ctx, func(ctx context.Context) error {
			s, err := c.admin.queryState(ctx)
			if err == nil && slices.Contains(s.live, server) {
				err = fmt.Errorf("%w: the master has not noticed the end of %s", database.ErrNotReady, server)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	accepted()
	if server != "" {
		if err := c.awaitState(ctx, func(ctx context.Context) error { return c.checkRecovered(ctx, server) }); err != nil {
			return err
		}
	}
	if c.options.storage != storageHDFS {
		return nil
	}
	s, err := c.admin.queryState(ctx)
	if err != nil {
		return err
	}
	if err := c.rollLogs(ctx, s.live); err != nil {
		return err
	}
	return c.awaitState(ctx, func(ctx context.Context) error { return c.checkRedundant(ctx, node) })
}

func (c *cluster) lastServer(ctx context.Context, node host.Host) (string, error) {
	s, err := c.admin.queryState(ctx)
	if err != nil {
		return "", err
	}
	if server := serverOn(s.live, node.Addr()); server != "" {
		return server, nil
	}
	return serverOn(s.dead, node.Addr()), nil
}

func (c *cluster) dataNodeAddr(h host.Host) string { return listenAddress(h, portDataNode) }

func (c *cluster) setExcluded(ctx context.Context, node host.Host, excluded bool) error {
	if c.options.storage != storageHDFS {
		return nil
	}
	c.mu.Lock()
	delete(c.exclude, c.dataNodeAddr(node))
	if excluded {
		c.exclude[c.dataNodeAddr(node)] = true
	}
	text := strings.Join(slices.Sorted(maps.Keys(c.exclude)), "\n") + "\n"
	c.mu.Unlock()
	if err := files.WriteText(ctx, c.firstNode().Files(), c.site(c.firstNode()).exclude, text); err != nil {
		return fmt.Errorf("writing the NameNode's list of excluded nodes: %w", err)
	}
	_, err := c.admin.query(ctx, "datanodes-changed")
	return err
}

// releaseBlocks rolls the open logs to the staying nodes and ends a DataNode when its blocks are not needed.
func (c *cluster) releaseBlocks(ctx context.Context, node host.Host, leaving string, servers []string) error {
	stay := slices.DeleteFunc(slices.Clone(servers), func(s string) bool { return s == leaving })
	if err := c.rollLogs(ctx, stay); err != nil {
		return err
	}
	err := c.awaitState(ctx, func(ctx context.Context) error {
		nodes, err := c.admin.queryDataNodes(ctx)
		if d := nodes[c.dataNodeAddr(node)]; err == nil && d.state != "DECOMMISSIONED" {
			err = fmt.Errorf("%w: the DataNode on %s is %s", database.ErrNotReady, node.Name(), d.state)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.stopRole(ctx, node, dataNode)
}

// rollLogs makes servers begin new write-ahead logs: a block is not copied until it is finished.
func (c *cluster) rollLogs(ctx context.Context, servers []string) error {
	for _, s := range servers {
		if _, err := c.admin.query(ctx, "roll", s); err != nil {
			return err
		}
	}
	return nil
}

// checkRedundant returns nil when the NameNode has given up the DataNode and all blocks have their copies.
func (c *cluster) checkRedundant(ctx context.Context, node host.Host) error {
	nodes, err := c.admin.queryDataNodes(ctx)
	if err != nil {
		return err
	}
	if nodes[c.dataNodeAddr(node)].live {
		return fmt.Errorf("%w: the NameNode has not noticed the end of the DataNode on %s", database.ErrNotReady, node.Name())
	}
	n, err := c.admin.queryNumber(ctx, "redundancy")
	if err == nil && n > 0 {
		err = fmt.Errorf("%w: %d blocks lack copies", database.ErrNotReady, n)
	}
	return err
}

// checkDataNode returns nil when the NameNode counts the node's DataNode as live.
func (c *cluster) checkDataNode(ctx context.Context, h host.Host) error {
	if c.options.storage != storageHDFS {
		return nil
	}
	nodes, err := c.admin.queryDataNodes(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", database.ErrNotReady, err)
	}
	if !nodes[c.dataNodeAddr(h)].live {
		return fmt.Errorf("%w: the NameNode does not know the DataNode on %s", database.ErrNotReady, h.Name())
	}
	return nil
}

// Join implements database.Cluster:
//
//	start     accepted: NameNode and master list the new DataNode and RegionServer
//	balance   complete: members differ by at most one region, and none is in transition
func (c *cluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	return c.RunJoin(ctx, node, daemon.JoinSteps{
		Check: c.Ready,
		Join: func(ctx context.Context, timer *daemon.ChangeTimer) error {
			if err := c.admitNode(ctx, node, timer.Began()); err != nil {
				return errors.Join(err, c.killServers(node))
			}
			timer.Accept()
			c.Add(node)
			c.ReportProgress("moving regions to %s", node.Name())
			if err := c.awaitState(ctx, c.checkBalanced); err != nil {
				return fmt.Errorf("%w; it stays a member", err)
			}
			return nil
		},
	})
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
	return c.RunHalt(ctx, node, func(ctx context.Context, node host.Host) error {
		if node.Name() == c.firstNode().Name() {
			return fmt.Errorf("%w: %s", database.ErrFixed, anchorReason(c.options.storage))
		}
		c.setHalted(node, true)
		if manner == database.Abrupt {
			return c.killServers(node)
		}
		return errors.Join(c.stopRole(ctx, node, regionServer), c.stopRole(ctx, node, dataNode))
	})
}

func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	return c.RunRevive(ctx, node, func(ctx context.Context, node host.Host) error {
		if !c.isHalted(node) {
			return fmt.Errorf("%w, and not halted", database.ErrMember)
		}
		if err := c.startMember(ctx, node, time.Now()); err != nil {
			return errors.Join(err, c.killServers(node))
		}
		c.setHalted(node, false)
		return c.awaitState(ctx, c.checkBalanced)
	})
}
