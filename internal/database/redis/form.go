package redis

import (
	"context"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"skerry/internal/machine/host"
)

// readyTimeout bounds how long a new cluster may take to agree. Redis itself keeps a
// new master from serving for 2 s.
const readyTimeout = 60 * time.Second

// formCluster makes one cluster of servers that know nobody, over the protocol:
//
//	slots      every master an equal share, and an epoch of its own, so that none of
//	           them has to be negotiated
//	meet       every node is introduced to every other
//	replicate  where there are replicas
//	meet again a MEET from a node that is known tells which slots it serves, or that
//	           it is a replica
//
// redis-cli --cluster create introduces all to the first alone and leaves the rest to
// gossip, which is one message a second from each node to a random other: 8 nodes take
// from 2 to 9 s with it, and 2.1 s this way, of which 2 s are a delay of Redis' own; 64
// nodes take 2.5 s.
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

// assignInitialSlots gives every master its slots.
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
				return fmt.Errorf("giving %s the slots %d-%d: %w", m.host.Name(), from, to, err)
			}
			if err := m.admin.Do(gctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
				return fmt.Errorf("giving %s an epoch: %w", m.host.Name(), err)
			}
			return nil
		})
	}
	return g.Wait()
}

// introduceAll introduces every member to every other.
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

// queueMeet has a server meet another. Where the other's bus is, a server takes for granted
// unless it is told.
func (c *cluster) queueMeet(ctx context.Context, pipe goredis.Pipeliner, other *member) {
	port, bus := host.Port(other.host, c.options.port), host.Port(other.host, c.options.port+busOffset)
	args := []any{"CLUSTER", "MEET", other.host.Addr(), port}
	if bus != port+busOffset {
		args = append(args, bus)
	}
	pipe.Do(ctx, args...)
}

// slotShare is the i-th of n equal parts of the slots.
func slotShare(i, n int) (from, to int) { return i * slots / n, (i+1)*slots/n - 1 }

// assignReplicas makes the nodes that are no masters replicas of theirs.
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

// replicateFrom makes a server the replica of another.
func (m *member) replicateFrom(ctx context.Context, master *member) error {
	id, err := master.admin.ClusterMyID(ctx).Result()
	if err != nil {
		return fmt.Errorf("asking %s for its id: %w", master.host.Name(), err)
	}
	if err := m.admin.ClusterReplicate(ctx, id).Err(); err != nil {
		return fmt.Errorf("making %s a replica of %s: %w", m.host.Name(), master.host.Name(), err)
	}
	return nil
}
