package ndb

import (
	"context"
	"fmt"
	"strconv"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/database/mysql"
)

func (c *cluster) Ready(ctx context.Context) error { return c.checkServes(ctx, c.members()) }

// checkServes returns nil if each data node has started and each SQL node can use the data nodes.
func (c *cluster) checkServes(ctx context.Context, members []member) error {
	peers, err := c.queryPeers(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		if p := peers[m.id]; !p.started() {
			return fmt.Errorf("the data node on %s has not started", m.Host.Name())
		}
		if p := peers[m.sqlID()]; !p.connected {
			return fmt.Errorf("the SQL node on %s is not connected", m.Host.Name())
		}
	}
	return daemon.ForEach(ctx, members, func(ctx context.Context, _ int, m member) error {
		seen, err := m.QueryPairs(ctx, readyQuery)
		if err != nil {
			return err
		}
		return checkUsable(m.Host.Name(), seen)
	})
}

// readyQuery returns the number of data nodes that a SQL node can use. Its engine is enabled even without a cluster.
const readyQuery = "SHOW GLOBAL STATUS LIKE '" + readyNodes + "'"

const readyNodes = "Ndb_number_of_ready_data_nodes"

func checkUsable(node string, seen map[string]string) error {
	n, enabled := seen[readyNodes]
	switch {
	case !enabled:
		return fmt.Errorf("the mysqld on %s has no NDB", node)
	case n == "0":
		return fmt.Errorf("the SQL node on %s can use no data node", node)
	}
	return nil
}

// rowsQuery counts the rows of the benchmark's table in each data node, copies included.
const rowsQuery = "SELECT node_id, SUM(fixed_elem_count) FROM ndbinfo.memory_per_fragment " +
	"WHERE fq_name = '" + mysql.Schema + "/def/" + mysql.Table + "' GROUP BY node_id"

// Members implements database.Cluster. A member's share is that of its node group.
func (c *cluster) Members(ctx context.Context) ([]database.Member, error) {
	peers, err := c.queryPeers(ctx)
	if err != nil {
		return nil, fmt.Errorf("querying the members: %w", err)
	}
	groups := make(map[int]bool)
	for _, p := range peers {
		if p.kind == "NDB" && p.group >= 0 {
			groups[p.group] = true
		}
	}
	held := make(map[string]string)
	if s, err := c.findSQL(ctx); err == nil {
		if held, err = s.QueryPairs(ctx, rowsQuery); err != nil {
			return nil, fmt.Errorf("querying the members: %w", err)
		}
	}
	var members []database.Member
	for _, m := range c.members() {
		p := peers[m.id]
		d := database.Member{Node: m.Host.Name(), State: stateText(p)}
		if p.group >= 0 {
			d.Share = 1 / float64(len(groups))
		}
		if n := held[strconv.Itoa(m.id)]; n != "" {
			if d.Rows, err = strconv.ParseInt(n, 10, 64); err != nil {
				return nil, fmt.Errorf("querying the members: the rows of %s: %w", m.Host.Name(), err)
			}
		}
		members = append(members, d)
	}
	return members, nil
}

func stateText(p peer) string {
	switch {
	case !p.connected:
		return "not connected"
	case p.starting:
		return "starting"
	case p.group < 0:
		return "started, no node group"
	}
	return fmt.Sprintf("started, node group %d", p.group)
}

func (c *cluster) findSQL(ctx context.Context) (*mysql.Server, error) {
	return c.FirstServing(ctx, func(ctx context.Context, s *mysql.Server) error {
		_, err := s.Query(ctx, "SELECT 1")
		return err
	})
}

func (c *cluster) Count(ctx context.Context) (int64, error) {
	s, err := c.findSQL(ctx)
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	return s.Count(ctx, "")
}

func (c *cluster) Clear(ctx context.Context) error {
	s, err := c.findSQL(ctx)
	if err != nil {
		return fmt.Errorf("clearing the table: %w", err)
	}
	return s.Clear(ctx)
}
