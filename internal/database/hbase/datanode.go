package hbase

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"skerry/internal/database"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

func (c *cluster) dataNodeAddr(h host.Host) string { return listenAddress(h, portDataNode) }

// setExcluded tells the NameNode whether a DataNode is to leave.
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
		return fmt.Errorf("telling the NameNode who is to leave: %w", err)
	}
	_, err := c.admin.query(ctx, "datanodes-changed")
	return err
}

// releaseBlocks ends a DataNode when none of its blocks is needed. The logs that are
// being written are begun anew first, on the nodes that stay.
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

// rollLogs has servers begin new write-ahead logs: a block that is being written is copied
// nowhere until it is finished.
func (c *cluster) rollLogs(ctx context.Context, servers []string) error {
	for _, s := range servers {
		if _, err := c.admin.query(ctx, "roll", s); err != nil {
			return err
		}
	}
	return nil
}

// checkRedundant returns nil when the NameNode has given a DataNode up and every block has
// all its copies elsewhere.
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

// checkDataNode returns nil when the NameNode counts the node's DataNode among those that live.
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
