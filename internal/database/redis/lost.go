package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/advice"
	"skerry/internal/database"
)

// failoverPatience is how much longer than cluster_node_timeout a failover may take: the
// members must agree that the master has failed, and vote.
const failoverPatience = 30 * time.Second

// defaultNodeTimeout is Redis' own cluster-node-timeout.
const defaultNodeTimeout = 15 * time.Second

// removeLost ends the membership of a node that is lost. Its process is killed first.
//
//	a replica                 is forgotten
//	a master with replicas    one of them takes over, as in any failover; then forgotten
//	a master without          is forgotten, and the others share its slots out, empty:
//	                          its rows are lost. Reviving it would keep them.
func (c *cluster) removeLost(ctx context.Context, m *member) (accepted time.Duration, err error) {
	views, err := c.readAnsweringViews(ctx)
	if err != nil {
		return 0, err
	}
	views = answeringViews(views, m)
	self, known := findPeer(views, m.addr)
	if !known {
		return 0, fmt.Errorf("no member that runs knows it: %w", database.ErrNotMember)
	}
	heirs := false
	masters := 0
	for _, p := range views[0].peers {
		heirs = heirs || p.master == self.id && !p.hasFlag("fail")
		if p.hasFlag("master") && p.countSlots() > 0 {
			masters++
		}
	}
	owner := self.countSlots() > 0
	if owner && !heirs && masters <= minMasters {
		return 0, advice.With(fmt.Errorf("%w: %s", database.ErrFixed, fewMasters), "halt and revive it instead")
	}
	began := time.Now()
	if m.MarkHalted() {
		if err := m.Kill(); err != nil {
			return 0, err
		}
	}
	if owner && heirs {
		c.ReportProgress("a replica takes over from %s", m.host.Name())
		if err := c.awaitFailover(ctx, m); err != nil {
			return 0, err
		}
		owner = false
	}
	if err := c.forgetMember(ctx, m, self.id); err != nil {
		return 0, err
	}
	accepted = time.Since(began)
	if err := c.removeMember(ctx, m); err != nil {
		return accepted, err
	}
	if owner {
		c.Log.Warn("rows are lost: the node that left held the only copy", "database", c.kind.name,
			"node", m.host.Name(), "slots", self.countSlots())
		c.ReportProgress("the %d slots of %s are shared out, empty", self.countSlots(), m.host.Name())
		if err := c.distributeSlots(ctx, views, self); err != nil {
			return accepted, err
		}
	}
	return accepted, c.repair(ctx)
}

// answeringViews are the views of members that answered, but for one.
func answeringViews(views []view, but *member) []view {
	var some []view
	for _, v := range views {
		if v.peers != nil && v.member != but {
			some = append(some, v)
		}
	}
	return some
}

// awaitFailover waits until another node has the slots of a master that is lost.
func (c *cluster) awaitFailover(ctx context.Context, lost *member) error {
	patience := failoverPatience + 2*max(c.options.nodeTimeout, defaultNodeTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no replica has taken over after %v", patience))
	defer cancel()
	return c.Servers.Await(ctx, func(ctx context.Context) error {
		views, err := c.readViews(ctx)
		if err != nil {
			return err
		}
		if p, _ := findPeer(views, lost.addr); p.countSlots() > 0 {
			return fmt.Errorf("%w: %d slots have no master yet", database.ErrNotReady, p.countSlots())
		}
		return nil
	})
}

// distributeSlots shares the slots of a node that has been forgotten out over the masters. One
// that was on its way to another member goes to that one, with what has arrived of it.
func (c *cluster) distributeSlots(ctx context.Context, before []view, lost peer) error {
	var heirs []view
	for _, v := range before {
		if v.self.master == "" && !v.Halted() {
			heirs = append(heirs, v)
		}
	}
	if len(heirs) == 0 {
		return errors.New("no master is left")
	}
	gets := make([][]int, len(heirs))
	next := 0
	for _, r := range lost.slots {
	slot:
		for s := r.from; s <= r.to; s++ {
			for i, h := range heirs {
				if h.self.importing[s] == lost.id {
					gets[i] = append(gets[i], s)
					continue slot
				}
			}
			i := next * len(heirs) / lost.countSlots()
			gets[i] = append(gets[i], s)
			next++
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	for i, h := range heirs {
		if len(gets[i]) == 0 {
			continue
		}
		g.Go(func() error {
			client := h.openChanger(c.Env.Control)
			defer client.Close()
			args := []any{"CLUSTER", "ADDSLOTS"}
			for _, s := range gets[i] {
				args = append(args, strconv.Itoa(s))
			}
			if err := client.Do(gctx, args...).Err(); err != nil {
				return fmt.Errorf("giving %s the slots of the node that is lost: %w", h.host.Name(), err)
			}
			return nil
		})
	}
	return g.Wait()
}
