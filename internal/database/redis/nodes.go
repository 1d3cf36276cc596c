package redis

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"skerry/internal/machine/host"
)

// peer is a line of CLUSTER NODES, https://redis.io/docs/latest/commands/cluster-nodes/.
type peer struct {
	id     string
	addr   string // host:port
	flags  []string
	master string // the id of its master, "" for a master
	epoch  int64  // of its claim on slots: the greatest one wins
	link   bool   // whether the viewing node is connected to it
	slots  []slotRange
	// migrating and importing map moving slots to the id of the other node, in a node's view of itself.
	migrating, importing map[int]string
}

type slotRange struct{ from, to int } // both inclusive

func (p peer) hasFlag(flag string) bool {
	for _, f := range p.flags {
		if f == flag {
			return true
		}
	}
	return false
}

func (p peer) countSlots() (n int) {
	for _, r := range p.slots {
		n += r.to - r.from + 1
	}
	return n
}

func (p peer) countMoves() int { return len(p.migrating) + len(p.importing) }

// stateText returns Redis' own words for the node, such as "master", "slave" or "master,fail".
func (p peer) stateText() string {
	var words []string
	for _, f := range p.flags {
		if f != "myself" {
			words = append(words, f)
		}
	}
	return strings.Join(words, ",")
}

// parseNodes parses the reply to CLUSTER NODES, with one line per node:
//
//	id host:port@bus[,name] flags master ping pong epoch link [slot|from-to|[slot->-id]] ...
func parseNodes(text string) ([]peer, error) {
	var peers []peer
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 8 {
			return nil, fmt.Errorf("reading CLUSTER NODES: %q has %d fields, want 8 or more", line, len(f))
		}
		p := peer{id: f[0], flags: strings.Split(f[2], ",")}
		p.addr, _, _ = strings.Cut(f[1], "@")
		if _, _, err := net.SplitHostPort(p.addr); err != nil {
			return nil, fmt.Errorf("reading CLUSTER NODES: %q: %w", line, err)
		}
		p.link = f[7] == "connected"
		var err error
		if p.epoch, err = strconv.ParseInt(f[6], 10, 64); err != nil {
			return nil, fmt.Errorf("reading CLUSTER NODES: %q: the epoch: %w", line, err)
		}
		if f[3] != "-" {
			p.master = f[3]
		}
		for _, s := range f[8:] {
			if strings.HasPrefix(s, "[") {
				if err := p.parseMove(s); err != nil {
					return nil, fmt.Errorf("reading CLUSTER NODES: %q: %w", line, err)
				}
				continue
			}
			r, err := parseSlotRange(s)
			if err != nil {
				return nil, fmt.Errorf("reading CLUSTER NODES: %q: %w", line, err)
			}
			p.slots = append(p.slots, r)
		}
		peers = append(peers, p)
	}
	return peers, nil
}

// parseMove parses "[5461->-id]", a slot that moves to a node, or "[5461-<-id]", one from it.
func (p *peer) parseMove(s string) error {
	inner, ok := strings.CutSuffix(strings.TrimPrefix(s, "["), "]")
	for _, arrow := range []string{"->-", "-<-"} {
		slot, id, found := strings.Cut(inner, arrow)
		if !ok || !found {
			continue
		}
		r, err := parseSlotRange(slot)
		if err != nil {
			return err
		}
		if arrow == "->-" {
			p.migrating = withSlot(p.migrating, r.from, id)
		} else {
			p.importing = withSlot(p.importing, r.from, id)
		}
		return nil
	}
	return fmt.Errorf("invalid moving slot %q", s)
}

func withSlot(m map[int]string, slot int, id string) map[int]string {
	if m == nil {
		m = make(map[int]string)
	}
	m[slot] = id
	return m
}

func parseSlotRange(s string) (slotRange, error) {
	from, to, ranged := strings.Cut(s, "-")
	if !ranged {
		to = from
	}
	a, err := strconv.Atoi(from)
	if err != nil {
		return slotRange{}, err
	}
	b, err := strconv.Atoi(to)
	if err != nil {
		return slotRange{}, err
	}
	if a < 0 || b >= slots || a > b {
		return slotRange{}, fmt.Errorf("slots %s are not within 0-%d", s, slots-1)
	}
	return slotRange{a, b}, nil
}

// readyTimeout bounds the forming of a cluster. Redis itself delays new masters by 2 s.
const readyTimeout = 60 * time.Second

// formCluster forms one cluster of new servers, over Redis' own protocol:
//
//	slots      every master gets an equal share and a distinct epoch
//	meet       every node is introduced to every other
//	replicate  if there are replicas
//	meet again MEET from a known node carries its slots, or that it is a replica
//
// redis-cli --cluster create leaves most introductions to gossip, one message a second to a random node: 8 nodes need
// 2 to 9 s. formCluster needs 2.1 s for 8 and 2.5 s for 64 nodes, including a delay of 2 s by Redis.
func (c *cluster) formCluster(ctx context.Context) error {
	members := c.All()
	master := placeMasters(c.Env.Nodes, c.options.masters, c.options.replicas)
	if err := c.assignInitialSlots(ctx, members, master); err != nil {
		return err
	}
	if err := c.introduceAll(ctx, members); err != nil {
		return err
	}
	if err := c.Servers.Await(ctx, c.checkAcquainted); err != nil {
		return err
	}
	if err := assignReplicas(ctx, members, master); err != nil {
		return err
	}
	return c.introduceAll(ctx, members)
}

func (c *cluster) assignInitialSlots(ctx context.Context, members []*member, master []int) error {
	g, gctx := errgroup.WithContext(ctx)
	next := 0
	for i, m := range members {
		if master[i] != i {
			continue
		}
		from, to := slotShare(next, c.options.masters)
		next++
		g.Go(func() error {
			if err := m.admin.ClusterAddSlotsRange(gctx, from, to).Err(); err != nil {
				return fmt.Errorf("assigning slots %d-%d to %s: %w", from, to, m.host.Name(), err)
			}
			if err := m.admin.Do(gctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
				return fmt.Errorf("setting the epoch of %s: %w", m.host.Name(), err)
			}
			return nil
		})
	}
	return g.Wait()
}

func (c *cluster) introduceAll(ctx context.Context, members []*member) error {
	g, gctx := errgroup.WithContext(ctx)
	for _, m := range members {
		g.Go(func() error {
			pipe := m.admin.Pipeline()
			for _, other := range members {
				if other != m {
					c.queueMeet(gctx, pipe, other)
				}
			}
			if _, err := pipe.Exec(gctx); err != nil {
				return fmt.Errorf("introducing %s to the others: %w", m.host.Name(), err)
			}
			return nil
		})
	}
	return g.Wait()
}

// queueMeet queues CLUSTER MEET with another member, with the bus port if that is not at the default offset.
func (c *cluster) queueMeet(ctx context.Context, pipe goredis.Pipeliner, other *member) {
	port, bus := host.Port(other.host, c.options.port), host.Port(other.host, c.options.port+busOffset)
	args := []any{"CLUSTER", "MEET", other.host.Addr(), port}
	if bus != port+busOffset {
		args = append(args, bus)
	}
	pipe.Do(ctx, args...)
}

func slotShare(i, n int) (from, to int) { return i * slots / n, (i+1)*slots/n - 1 }

func assignReplicas(ctx context.Context, members []*member, master []int) error {
	g, gctx := errgroup.WithContext(ctx)
	for i, m := range members {
		if master[i] == i {
			continue
		}
		g.Go(func() error { return m.replicateFrom(gctx, members[master[i]]) })
	}
	return g.Wait()
}

func (m *member) replicateFrom(ctx context.Context, master *member) error {
	id, err := master.admin.ClusterMyID(ctx).Result()
	if err != nil {
		return fmt.Errorf("reading the id of %s: %w", master.host.Name(), err)
	}
	if err := m.admin.ClusterReplicate(ctx, id).Err(); err != nil {
		return fmt.Errorf("making %s a replica of %s: %w", m.host.Name(), master.host.Name(), err)
	}
	return nil
}

// placeMasters chooses the masters, and a master for each replica:
//
//	site    a        b        c
//	nodes   n1 n2    n3 n4    n5 n6
//	        M1 R2    M2 R3    M3 R1      3 masters, a replica each
//
// Masters rotate over the sites, so that the loss of a site loses few masters. A replica
// shares its master's site only if every assignment requires it. The result holds, for each
// node, the index of its master, which is the node itself for a master.
func placeMasters(nodes []host.Host, masters, replicas int) []int {
	master := make([]int, len(nodes))
	for i := range master {
		master[i] = -1
	}
	chosen := pickBySite(nodes, masters)
	for _, i := range chosen {
		master[i] = i
	}
	var free []int
	for i := range nodes {
		if master[i] < 0 {
			free = append(free, i)
		}
	}
	// A seat is one replica of one master: the first of each, then the second of each.
	seats := make([]int, 0, masters*replicas)
	for range replicas {
		seats = append(seats, chosen...)
	}
	for seat, node := range matchSeats(len(seats), len(free), func(seat, node int) bool {
		return nodes[seats[seat]].Site() != nodes[free[node]].Site()
	}) {
		master[free[node]] = seats[seat]
	}
	return master
}

func pickBySite(nodes []host.Host, count int) []int {
	var sites []string
	at := make(map[string][]int)
	for i, h := range nodes {
		if at[h.Site()] == nil {
			sites = append(sites, h.Site())
		}
		at[h.Site()] = append(at[h.Site()], i)
	}
	picked := make([]int, 0, count)
	for round := 0; len(picked) < count; round++ {
		for _, s := range sites {
			if len(picked) < count && round < len(at[s]) {
				picked = append(picked, at[s][round])
			}
		}
	}
	return picked
}

// matchSeats assigns each seat a distinct node, as many as possible of them suitable, by augmenting paths (Kuhn).
// There must be as many nodes as seats.
func matchSeats(seats, nodes int, suits func(seat, node int) bool) []int {
	taken := make([]int, nodes) // the seat of a node, -1 for none
	for n := range taken {
		taken[n] = -1
	}
	var seated func(seat int, tried []bool) bool
	seated = func(seat int, tried []bool) bool {
		for k := range nodes {
			n := (seat + 1 + k) % nodes // neighbours, in a circle
			if tried[n] || !suits(seat, n) {
				continue
			}
			tried[n] = true
			if taken[n] < 0 || seated(taken[n], tried) {
				taken[n] = seat
				return true
			}
		}
		return false
	}
	result := make([]int, seats)
	for s := range seats {
		result[s] = -1
		seated(s, make([]bool, nodes))
	}
	for n, s := range taken {
		if s >= 0 {
			result[s] = n
		}
	}
	next := 0
	for s := range result {
		if result[s] >= 0 {
			continue
		}
		for taken[next] >= 0 {
			next++
		}
		taken[next], result[s] = s, next
	}
	return result
}
