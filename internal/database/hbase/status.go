package hbase

import (
	"context"
	"fmt"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

// Ready implements database.Cluster: ZooKeeper runs without error, the master lists every RegionServer, no region
// is in transition, and the NameNode lists every DataNode.
func (c *cluster) Ready(ctx context.Context) error {
	if err := c.checkZooKeeper(ctx); err != nil {
		return err
	}
	if _, err := c.checkSettled(ctx); err != nil {
		return err
	}
	for _, h := range c.activeMembers() {
		if err := c.checkDataNode(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// checkSettled returns the state once every RegionServer is listed and no region is in transition.
func (c *cluster) checkSettled(ctx context.Context) (state, error) {
	s, err := c.admin.queryState(ctx)
	if err != nil {
		return s, fmt.Errorf("%w: %w", database.ErrNotReady, err)
	}
	for _, h := range c.activeMembers() {
		if serverOn(s.live, h.Addr()) == "" {
			return s, fmt.Errorf("%w: the master does not know the RegionServer on %s", database.ErrNotReady, h.Name())
		}
	}
	if n := len(s.transition); n > 0 {
		return s, fmt.Errorf("%w: %d regions are in transition, the first is %s", database.ErrNotReady, n, s.transition[0])
	}
	return s, nil
}

// checkBalanced runs the balancer and returns nil once members differ by at most one region of the table.
func (c *cluster) checkBalanced(ctx context.Context) error {
	s, err := c.checkSettled(ctx)
	if err != nil {
		return err
	}
	places, err := c.admin.queryNumbers(ctx, "places", table)
	if err != nil {
		return err
	}
	if isUneven(places, s.live, c.activeMembers()) {
		if _, err := c.admin.query(ctx, "balance"); err != nil {
			return err
		}
		return fmt.Errorf("%w: regions are not in balance: %v", database.ErrNotReady, places)
	}
	return nil
}

// isUneven reports whether the table's regions are unbalanced, or on servers that are not members.
func isUneven(places map[string]int64, live []string, members []host.Host) bool {
	var total, counted, least, most int64
	for _, n := range places {
		total += n
	}
	for i, h := range members {
		n := places[serverOn(live, h.Addr())]
		counted += n
		if i == 0 || n < least {
			least = n
		}
		most = max(most, n)
	}
	return counted != total || most-least > 1
}

// Members implements database.Cluster. The master's states are "serving", "draining" and "dead"; the share is that
// of the table's regions.
func (c *cluster) Members(ctx context.Context) ([]database.Member, error) {
	s, err := c.admin.queryState(ctx)
	if err != nil {
		return nil, err
	}
	places, err := c.admin.queryNumbers(ctx, "places", table)
	if err != nil {
		return nil, err
	}
	rows, err := c.admin.queryNumbers(ctx, "count", table)
	if err != nil {
		return nil, err
	}
	var total int64
	for _, n := range places {
		total += n
	}
	var members []database.Member
	for _, h := range c.All() {
		m := database.Member{Node: h.Name(), State: "dead"}
		if server := serverOn(s.live, h.Addr()); server != "" && !c.isHalted(h) {
			m.State, m.Rows = "serving", rows[server]
			if total > 0 {
				m.Share = float64(places[server]) / float64(total)
			}
			if serverOn(s.draining, h.Addr()) == server {
				m.State = "draining"
			}
		}
		members = append(members, m)
	}
	return members, nil
}

// Count implements database.Cluster: scans of keys, all regions at the same time.
func (c *cluster) Count(ctx context.Context) (int64, error) {
	rows, err := c.admin.queryNumbers(ctx, "count", table)
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	var total int64
	for _, n := range rows {
		total += n
	}
	return total, nil
}

// Clear implements database.Cluster: the table is truncated and stays cut as it is.
func (c *cluster) Clear(ctx context.Context) error {
	if _, err := c.admin.query(ctx, "truncate", table); err != nil {
		return fmt.Errorf("emptying the table: %w", err)
	}
	if err := c.awaitState(ctx, c.checkBalanced); err != nil {
		return fmt.Errorf("emptying the table: %w", err)
	}
	c.ensureSharedBridge(ctx)
	return nil
}
