package hbase

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

type admin struct{ *bridge }

func (a admin) query(ctx context.Context, words ...string) ([]string, error) {
	s := a.acquireSlot()
	defer a.releaseSlot(s)
	frame := newFrame(nil, opAdminister)
	frame = binary.BigEndian.AppendUint16(frame, uint16(len(words)))
	for _, w := range words {
		frame = appendValue(frame, w)
	}
	r, err := a.call(ctx, s, frame, math.MaxInt32)
	if err == nil {
		err = r.err()
	}
	if err != nil {
		return nil, fmt.Errorf("querying hbase for %s: %w", words[0], err)
	}
	d := decoder{b: r.body}
	return d.lines()
}

// state is the cluster as the master reports it. Servers are named HOST,PORT,START.
type state struct {
	live, dead, draining []string
	transition           []string // regions, with what is happening to them
}

func (a admin) queryState(ctx context.Context) (state, error) {
	lines, err := a.query(ctx, "status")
	var s state
	for _, l := range lines {
		kind, name, _ := strings.Cut(l, "\t")
		switch kind {
		case "live":
			s.live = append(s.live, name)
		case "dead":
			s.dead = append(s.dead, name)
		case "draining":
			s.draining = append(s.draining, name)
		case "transition":
			s.transition = append(s.transition, name)
		}
	}
	return s, err
}

// serverOn returns the latest server at an address, because a lost one may still be listed.
func serverOn(servers []string, addr string) string {
	name, youngest := "", int64(-1)
	for _, s := range servers {
		host, _, _ := strings.Cut(s, ",")
		if start := serverStart(s); host == addr && start > youngest {
			name, youngest = s, start
		}
	}
	return name
}

// serverStart returns the start time of a server in Unix milliseconds, -1 if its name has none.
func serverStart(server string) int64 {
	part := strings.Split(server, ",")
	start, err := strconv.ParseInt(part[len(part)-1], 10, 64)
	if len(part) != 3 || err != nil {
		return -1
	}
	return start
}

func (a admin) queryNumbers(ctx context.Context, words ...string) (map[string]int64, error) {
	lines, err := a.query(ctx, words...)
	if err != nil {
		return nil, err
	}
	n := make(map[string]int64, len(lines))
	for _, l := range lines {
		server, number, _ := strings.Cut(l, "\t")
		v, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("querying hbase for %s: %w: %q", words[0], errProtocol, l)
		}
		n[server] = v
	}
	return n, nil
}

func (a admin) queryNumber(ctx context.Context, words ...string) (int64, error) {
	lines, err := a.query(ctx, words...)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.Join(lines, ""), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("querying hbase for %s: %w: %q", words[0], errProtocol, lines)
	}
	return n, nil
}

type dataNodeState struct {
	live  bool
	state string // NORMAL, DECOMMISSION_INPROGRESS, DECOMMISSIONED
	heard int64  // when it last was heard of, in milliseconds since 1970
}

func (a admin) queryDataNodes(ctx context.Context) (map[string]dataNodeState, error) {
	lines, err := a.query(ctx, "datanodes")
	nodes := make(map[string]dataNodeState, len(lines))
	for _, l := range lines {
		part := strings.Split(l, "\t")
		if len(part) != 4 {
			return nil, fmt.Errorf("querying hbase for datanodes: %w: %q", errProtocol, l)
		}
		heard, err := strconv.ParseInt(part[3], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("querying hbase for datanodes: %w: %q", errProtocol, l)
		}
		if d := (dataNodeState{part[1] == "live", part[2], heard}); d.heard >= nodes[part[0]].heard {
			nodes[part[0]] = d
		}
	}
	return nodes, err
}

// createTable creates a table, unless it exists.
func (a admin) createTable(ctx context.Context, table, family, durability string, regions int) error {
	_, err := a.query(ctx, append([]string{"create", table, family, durability}, splitKeys(regions)...)...)
	return err
}

// countRows counts the rows of a table: scans of keys, all regions at the same time.
func (a admin) countRows(ctx context.Context, table string) (total int64, err error) {
	rows, err := a.queryNumbers(ctx, "count", table)
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	for _, n := range rows {
		total += n
	}
	return total, nil
}

// splitKeys are the keys at which a table is cut into so many regions, from YCSB's
// documentation: (1..n).map {|i| "user#{1000+i*(9999-1000)/n}"}. It cuts at n keys, of
// which the last is beyond nearly all; n-1 make n regions.
func splitKeys(regions int) []string {
	keys := make([]string, 0, regions)
	for i := 1; i < regions; i++ {
		keys = append(keys, "user"+strconv.Itoa(1000+i*(9999-1000)/regions))
	}
	return keys
}

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

func (c *cluster) Count(ctx context.Context) (int64, error) { return c.admin.countRows(ctx, table) }

// Clear implements database.Cluster: the table is truncated and stays cut as it is.
func (c *cluster) Clear(ctx context.Context) error {
	if _, err := c.admin.query(ctx, "truncate", table); err != nil {
		return fmt.Errorf("clearing the table: %w", err)
	}
	if err := c.awaitState(ctx, c.checkBalanced); err != nil {
		return fmt.Errorf("clearing the table: %w", err)
	}
	c.ensureSharedBridge(ctx)
	return nil
}
