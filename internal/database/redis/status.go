package redis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
)

type view struct {
	*member
	peers []peer
	self  peer
	state string // "ok" or "fail"
}

func (m *member) readView(ctx context.Context) (view, error) {
	v := view{member: m}
	pipe := m.admin.Pipeline()
	nodes, info := pipe.ClusterNodes(ctx), pipe.ClusterInfo(ctx)
	if _, err := pipe.Exec(ctx); err != nil {
		return v, fmt.Errorf("querying the server on %s: %w", m.host.Name(), err)
	}
	var err error
	if v.peers, err = parseNodes(nodes.Val()); err != nil {
		return v, fmt.Errorf("querying the server on %s: %w", m.host.Name(), err)
	}
	for _, p := range v.peers {
		if p.hasFlag("myself") {
			v.self = p
		}
	}
	for line := range strings.Lines(info.Val()) {
		if s, ok := strings.CutPrefix(strings.TrimSpace(line), "cluster_state:"); ok {
			v.state = s
		}
	}
	return v, nil
}

// readViews reads the views of all members that are not halted.
func (c *cluster) readViews(ctx context.Context) ([]view, error) {
	members := c.runningMembers()
	views := make([]view, len(members))
	return views, daemon.ForEach(ctx, members, func(ctx context.Context, i int, m *member) (err error) {
		views[i], err = m.readView(ctx)
		return err
	})
}

// readAnsweringViews reads the views of all members, without peers for members that do not answer.
func (c *cluster) readAnsweringViews(ctx context.Context) ([]view, error) {
	members := c.All()
	views := make([]view, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() {
			views[i].member = m
			if m.Halted() {
				return
			}
			if v, err := m.readView(ctx); err == nil {
				views[i] = v
			}
		})
	}
	all.Wait()
	return views, ctx.Err()
}

func (c *cluster) checkAcquainted(ctx context.Context) error {
	views, err := c.readViews(ctx)
	if err != nil {
		return err
	}
	return checkMutualViews(views)
}

func checkMutualViews(views []view) error {
	for _, v := range views {
		if len(v.peers) != len(views) {
			return fmt.Errorf("%w: %s knows %d nodes of %d", database.ErrNotReady, v.host.Name(), len(v.peers), len(views))
		}
		for _, p := range v.peers {
			if p.hasFlag("handshake") || p.hasFlag("noaddr") {
				return fmt.Errorf("%w: %s and %s are still introducing themselves", database.ErrNotReady, v.host.Name(), p.addr)
			}
		}
	}
	return nil
}

// Ready implements database.Cluster: every member knows every other, reports state ok and the same owners, and
// replicas are connected to their masters.
func (c *cluster) Ready(ctx context.Context) error {
	if err := c.checkNoneHalted(); err != nil {
		return err
	}
	views, err := c.readViews(ctx)
	if err != nil {
		return err
	}
	if len(views) == 0 {
		return fmt.Errorf("%w: the cluster has no members", database.ErrNotReady)
	}
	if err := checkMutualViews(views); err != nil {
		return err
	}
	for _, v := range views {
		if v.state != "ok" {
			return fmt.Errorf("%w: %s reports cluster state %s", database.ErrNotReady, v.host.Name(), v.state)
		}
		for _, p := range v.peers {
			if p.hasFlag("fail") || p.hasFlag("fail?") {
				return fmt.Errorf("%w: %s reports %s as %s", database.ErrNotReady, v.host.Name(), p.addr, p.stateText())
			}
		}
		if !sameOwners(v.peers, views[0].peers) {
			return fmt.Errorf("%w: %s and %s name different owners of slots", database.ErrNotReady, v.host.Name(), views[0].host.Name())
		}
	}
	return checkReplication(ctx, views)
}

// sameOwners reports whether two members name the same owners of slots and masters of replicas.
func sameOwners(a, b []peer) bool {
	owners := func(peers []peer) (owner [slots]string, masters map[string]string) {
		masters = make(map[string]string, len(peers))
		for _, p := range peers {
			masters[p.id] = p.master
			for _, r := range p.slots {
				for s := r.from; s <= r.to; s++ {
					owner[s] = p.id
				}
			}
		}
		return owner, masters
	}
	ownerA, mastersA := owners(a)
	ownerB, mastersB := owners(b)
	return ownerA == ownerB && maps.Equal(mastersA, mastersB)
}

func checkReplication(ctx context.Context, views []view) error {
	for _, v := range views {
		if v.self.master == "" {
			continue
		}
		info, err := v.admin.Info(ctx, "replication").Result()
		if err != nil {
			return fmt.Errorf("querying the server on %s: %w", v.host.Name(), err)
		}
		if !strings.Contains(info, "master_link_status:up") {
			return fmt.Errorf("%w: the replica on %s is not connected to its master", database.ErrNotReady, v.host.Name())
		}
	}
	return nil
}

// Members implements database.Cluster. A state is another member's, such as "master" or "master,fail", or
// "unreachable".
func (c *cluster) Members(ctx context.Context) ([]database.Member, error) {
	views, err := c.readAnsweringViews(ctx)
	if err != nil {
		return nil, err
	}
	members := make([]database.Member, len(views))
	for i, v := range views {
		m := &members[i]
		m.Node = v.host.Name()
		if v.peers == nil {
			m.State = "unreachable"
		}
		for _, other := range views {
			if other.member == v.member {
				continue
			}
			for _, p := range other.peers {
				if p.addr == v.addr {
					m.State, m.Share = p.stateText(), float64(p.countSlots())/slots
				}
			}
		}
		if v.peers == nil {
			continue
		}
		if m.Rows, err = v.countRows(ctx); err != nil && m.State == "" {
			m.State = "unreachable"
		}
	}
	return members, nil
}

// Count implements database.Cluster. It counts rows of masters, which must own all slots.
func (c *cluster) Count(ctx context.Context) (int64, error) {
	views, err := c.masterViews(ctx)
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	var total int64
	for _, v := range views {
		n, err := v.countRows(ctx)
		if err != nil {
			return 0, fmt.Errorf("counting rows: %w", err)
		}
		twice, err := v.countCopies(ctx, views)
		if err != nil {
			return 0, fmt.Errorf("counting rows: %w", err)
		}
		total += n - twice
	}
	return total, nil
}

// masterViews returns the views of the masters. It fails unless they own all slots.
func (c *cluster) masterViews(ctx context.Context) ([]view, error) {
	views, err := c.readViews(ctx)
	if err != nil {
		return nil, err
	}
	views = slices.DeleteFunc(views, func(v view) bool { return v.self.master != "" })
	owned := 0
	for _, v := range views {
		owned += v.self.countSlots()
	}
	if owned < slots {
		return nil, fmt.Errorf("%w: %d of %d slots have no running master", database.ErrNotReady, slots-owned, slots)
	}
	return views, nil
}

// countCopies counts a master's copies for unfinished moves, while another master still serves them.
func (v view) countCopies(ctx context.Context, masters []view) (int64, error) {
	pipe := v.admin.Pipeline()
	var counts []*goredis.IntCmd
	for slot, from := range v.self.importing {
		for _, o := range masters {
			if _, going := o.self.migrating[slot]; o.self.id == from && !going {
				counts = append(counts, pipe.ClusterCountKeysInSlot(ctx, slot))
			}
		}
	}
	if len(counts) == 0 {
		return 0, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, fmt.Errorf("querying the server on %s: %w", v.host.Name(), err)
	}
	var n int64
	for _, k := range counts {
		n += k.Val()
	}
	return n, nil
}

// countRows counts a server's keys without the parts of the index, which it finds in every state of the cluster.
func (m *member) countRows(ctx context.Context) (int64, error) {
	pipe := m.admin.Pipeline()
	size := pipe.DBSize(ctx)
	var keys [groups]*goredis.StringSliceCmd
	for g, slot := range indexSlots {
		keys[g] = pipe.ClusterGetKeysInSlot(ctx, slot, maxKeysInSlot)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, fmt.Errorf("querying the server on %s: %w", m.host.Name(), err)
	}
	n := size.Val()
	for g, k := range keys {
		if slices.Contains(k.Val(), indexKeys[g]) {
			n--
		}
	}
	return n, nil
}

// maxKeysInSlot bounds one answer. It suffices for 1.6 billion evenly spread records.
const maxKeysInSlot = 100_000

func (c *cluster) Clear(ctx context.Context) error {
	views, err := c.masterViews(ctx)
	if err != nil {
		return fmt.Errorf("clearing the table: %w", err)
	}
	return daemon.ForEach(ctx, views, func(ctx context.Context, _ int, v view) error {
		if err := v.admin.FlushAll(ctx).Err(); err != nil {
			return fmt.Errorf("emptying %s on %s: %w", c.kind.name, v.host.Name(), err)
		}
		return nil
	})
}
