package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
)

// ErrNotReady says that a member does not agree yet that the cluster serves.
var ErrNotReady = errors.New("redis is not ready")

// view is the cluster as one member sees it.
type view struct {
	*member
	peers []peer
	self  peer
	state string // "ok" or "fail"
}

// look asks a member.
func (m *member) look(ctx context.Context) (view, error) {
	v := view{member: m}
	pipe := m.admin.Pipeline()
	nodes, info := pipe.ClusterNodes(ctx), pipe.ClusterInfo(ctx)
	if _, err := pipe.Exec(ctx); err != nil {
		return v, fmt.Errorf("asking redis on %s: %w", m.host.Name(), err)
	}
	var err error
	if v.peers, err = parseNodes(nodes.Val()); err != nil {
		return v, fmt.Errorf("asking redis on %s: %w", m.host.Name(), err)
	}
	for _, p := range v.peers {
		if p.is("myself") {
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

// lookAll asks every member, all at the same time. Without lenient the first that does
// not answer is an error, with it that view has no peers.
func (c *cluster) lookAll(ctx context.Context, lenient bool) ([]view, error) {
	members := c.current()
	views := make([]view, len(members))
	g, gctx := errgroup.WithContext(ctx)
	for i, m := range members {
		g.Go(func() (err error) {
			views[i], err = m.look(gctx)
			if lenient && ctx.Err() == nil {
				return nil
			}
			return err
		})
	}
	return views, g.Wait()
}

// acquainted returns nil when every member knows exactly the members.
func (c *cluster) acquainted(ctx context.Context) error {
	views, err := c.lookAll(ctx, false)
	if err != nil {
		return err
	}
	return known(views)
}

func known(views []view) error {
	for _, v := range views {
		if len(v.peers) != len(views) {
			return fmt.Errorf("%w: %s knows %d nodes of %d", ErrNotReady, v.host.Name(), len(v.peers), len(views))
		}
		for _, p := range v.peers {
			if p.is("handshake") || p.is("noaddr") {
				return fmt.Errorf("%w: %s and %s are still introducing themselves", ErrNotReady, v.host.Name(), p.addr)
			}
		}
	}
	return nil
}

// Ready implements database.Cluster: every member knows every other, says that the
// state is ok, and names the same owner for each slot; replicas are in touch with
// their masters.
func (c *cluster) Ready(ctx context.Context) error {
	views, err := c.lookAll(ctx, false)
	if err != nil {
		return err
	}
	if len(views) == 0 {
		return fmt.Errorf("%w: it has no members", ErrNotReady)
	}
	if err := known(views); err != nil {
		return err
	}
	for _, v := range views {
		if v.state != "ok" {
			return fmt.Errorf("%w: %s says that the cluster's state is %s", ErrNotReady, v.host.Name(), v.state)
		}
		for _, p := range v.peers {
			if p.is("fail") || p.is("fail?") {
				return fmt.Errorf("%w: %s says that %s is %s", ErrNotReady, v.host.Name(), p.addr, p.state())
			}
		}
		if !agree(v.peers, views[0].peers) {
			return fmt.Errorf("%w: %s and %s name different owners of slots", ErrNotReady, v.host.Name(), views[0].host.Name())
		}
	}
	return replicating(ctx, views)
}

// agree tells whether two members name the same owner for each slot and the same
// master for each replica.
func agree(a, b []peer) bool {
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

// replicating returns nil when every replica is in touch with its master.
func replicating(ctx context.Context, views []view) error {
	for _, v := range views {
		if v.self.master == "" {
			continue
		}
		info, err := v.admin.Info(ctx, "replication").Result()
		if err != nil {
			return fmt.Errorf("asking redis on %s: %w", v.host.Name(), err)
		}
		if !strings.Contains(info, "master_link_status:up") {
			return fmt.Errorf("%w: the replica on %s has no data of its master yet", ErrNotReady, v.host.Name())
		}
	}
	return nil
}

// Members implements database.Cluster. A state is what the others say of a node:
// "master", "slave", "master,fail"; "unreachable" when it does not answer either.
func (c *cluster) Members(ctx context.Context) ([]database.Member, error) {
	views, err := c.lookAll(ctx, true)
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
					m.State, m.Share = p.state(), float64(p.owned())/slots
				}
			}
		}
		if v.peers == nil {
			continue
		}
		if m.Rows, err = v.rows(ctx); err != nil {
			return nil, err
		}
	}
	return members, nil
}

// Count implements database.Cluster.
func (c *cluster) Count(ctx context.Context) (int64, error) {
	var total int64
	views, err := c.lookAll(ctx, false)
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	for _, v := range views {
		if v.self.master != "" {
			continue
		}
		n, err := v.rows(ctx)
		if err != nil {
			return 0, fmt.Errorf("counting rows: %w", err)
		}
		total += n
	}
	return total, nil
}

// rows is how many keys a server has, the parts of the index left out. It asks for the
// keys in the slots of the index, which Redis answers in whatever state the cluster
// is, and so with none for the slots of others.
func (m *member) rows(ctx context.Context) (int64, error) {
	pipe := m.admin.Pipeline()
	size := pipe.DBSize(ctx)
	var keys [groups]*goredis.StringSliceCmd
	for g, slot := range indexSlots {
		keys[g] = pipe.ClusterGetKeysInSlot(ctx, slot, maxKeysInSlot)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, fmt.Errorf("asking redis on %s: %w", m.host.Name(), err)
	}
	n := size.Val()
	for g, k := range keys {
		if slices.Contains(k.Val(), indexKeys[g]) {
			n--
		}
	}
	return n, nil
}

// maxKeysInSlot bounds one answer: 1.6 billion records, evenly spread.
const maxKeysInSlot = 100_000

// Clear implements database.Cluster.
func (c *cluster) Clear(ctx context.Context) error {
	views, err := c.lookAll(ctx, false)
	if err != nil {
		return fmt.Errorf("emptying the table: %w", err)
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, v := range views {
		if v.self.master != "" {
			continue
		}
		g.Go(func() error {
			if err := v.admin.FlushAll(gctx).Err(); err != nil {
				return fmt.Errorf("emptying redis on %s: %w", v.host.Name(), err)
			}
			return nil
		})
	}
	return g.Wait()
}
