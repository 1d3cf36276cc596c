package hbase

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
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
		return nil, fmt.Errorf("asking hbase for %s: %w", words[0], err)
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
			return nil, fmt.Errorf("asking hbase for %s: %w: %q", words[0], errProtocol, l)
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
		return 0, fmt.Errorf("asking hbase for %s: %w: %q", words[0], errProtocol, lines)
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
			return nil, fmt.Errorf("asking hbase for datanodes: %w: %q", errProtocol, l)
		}
		heard, err := strconv.ParseInt(part[3], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("asking hbase for datanodes: %w: %q", errProtocol, l)
		}
		if d := (dataNodeState{part[1] == "live", part[2], heard}); d.heard >= nodes[part[0]].heard {
			nodes[part[0]] = d
		}
	}
	return nodes, err
}

func (a admin) createTable(ctx context.Context, durability string, regions int) error {
	_, err := a.query(ctx, append([]string{"create", table, family, durability}, splitKeys(regions)...)...)
	return err
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
