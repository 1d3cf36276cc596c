package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/advice"
	"skerry/internal/base/linger"
	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

// Leave implements database.Cluster. Gracefully, by the documented steps:
//
//	slots       move from a master without replicas to the others, with their keys; with a
//	            replica, a manual failover replaces the master, and no slot moves
//	  wait      until every other member knows the new owners, and clients no longer
//	            send requests to the node
//	forget      accepted: the others have received CLUSTER FORGET
//	  wait      complete: no member knows the node, and its process has ended
//
// A failed leave can be retried.
func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (database.Change, error) {
	check, remove := c.checkLeave, c.removeServing
	if manner == database.Abrupt {
		var lost loss
		check = func(ctx context.Context, m *member) (err error) {
			lost, err = c.checkRemoval(ctx, m)
			return err
		}
		remove = func(ctx context.Context, m *member, timer *daemon.ChangeTimer) error {
			return c.removeLost(ctx, m, lost, timer)
		}
	}
	return c.RunLeave(ctx, node, daemon.LeaveSteps[*member]{
		Check: check,
		Leave: func(ctx context.Context, m *member, timer *daemon.ChangeTimer) error {
			if err := remove(ctx, m, timer); err != nil {
				return err
			}
			if err := c.Servers.Await(ctx, func(ctx context.Context) error { return c.checkLeft(ctx, m) }); err != nil {
				return err
			}
			return c.checkByCLI(ctx)
		},
	})
}

// checkLeft returns nil if the members have settled, or, while one is halted, if none knows the departed one.
func (c *cluster) checkLeft(ctx context.Context, left *member) error {
	if c.checkNoneHalted() == nil {
		return c.checkSettled(ctx)
	}
	views, err := c.readViews(ctx)
	if err != nil {
		return err
	}
	if _, known := findPeer(views, left.addr); known {
		return fmt.Errorf("%w: %s is still known", database.ErrNotReady, left.host.Name())
	}
	return nil
}

func (c *cluster) removeServing(ctx context.Context, m *member, timer *daemon.ChangeTimer) error {
	v, err := m.readView(ctx)
	if err != nil {
		return err
	}
	switch heirs := v.replicas(); {
	case v.self.master != "":
	case len(heirs) > 0:
		if err := c.failOver(ctx, m, heirs[0]); err != nil {
			return err
		}
	case v.self.countSlots() > 0:
		c.ReportProgress("moving the slots of %s away", m.host.Name())
		bytes, err := c.rebalance(ctx, m)
		timer.Moved(bytes)
		if err != nil {
			return err
		}
	}
	if v.self.master == "" {
		if err := c.awaitDisowned(ctx, m, v.self.id); err != nil {
			return err
		}
		if err := m.awaitQuiet(ctx); err != nil {
			return err
		}
	}
	if err := c.forgetMember(ctx, m, v.self.id); err != nil {
		return err
	}
	timer.Accept()
	return c.removeMember(ctx, m)
}

// checkLeave refuses a leave after which the cluster has too few masters, and repairs the cluster before others.
func (c *cluster) checkLeave(ctx context.Context, m *member) error {
	if err := errors.Join(c.Ready(ctx), c.repair(ctx)); err != nil {
		return err
	}
	v, err := m.readView(ctx)
	if err != nil || v.self.master != "" || len(v.replicas()) > 0 {
		return err
	}
	masters := 0
	for _, p := range v.peers {
		if p.hasFlag("master") {
			masters++
		}
	}
	if masters <= minMasters {
		return fmt.Errorf("%w: %s", database.ErrFixed, fewMasters)
	}
	return nil
}

// failOver makes a replica replace its master without loss: the master pauses its clients meanwhile.
func (c *cluster) failOver(ctx context.Context, m *member, heir peer) error {
	var replica *member
	for _, o := range c.others(m) {
		if o.addr == heir.addr {
			replica = o
		}
	}
	if replica == nil {
		return fmt.Errorf("its replica %s is %w", heir.addr, database.ErrNotMember)
	}
	c.ReportProgress("%s takes over from %s", replica.host.Name(), m.host.Name())
	client := replica.openChanger(c.Env.Control)
	defer client.Close()
	if err := client.ClusterFailover(ctx).Err(); err != nil {
		return fmt.Errorf("failing over to %s: %w", replica.host.Name(), err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, linkTimeout, fmt.Errorf("%s has not taken over after %v", replica.host.Name(), linkTimeout))
	defer cancel()
	return c.Servers.Await(ctx, func(ctx context.Context) error {
		v, err := m.readView(ctx)
		if err != nil {
			return err
		}
		if v.self.master == "" {
			return fmt.Errorf("%w: %s is still a master", database.ErrNotReady, m.host.Name())
		}
		return c.Ready(ctx)
	})
}

// forgetMember makes all others forget a node and ignore gossip about it for a minute.
func (c *cluster) forgetMember(ctx context.Context, m *member, id string) error {
	others := c.others(m)
	if c.options.rebalance == rebalanceCLI && !m.Halted() {
		return c.runCLI(ctx, "del-node", others[0].addr, id)
	}
	return daemon.ForEach(ctx, others, func(ctx context.Context, _ int, o *member) error {
		client := o.openChanger(c.Env.Control)
		defer client.Close()
		err := client.ClusterForget(ctx, id).Err()
		if err != nil && !strings.Contains(err.Error(), "Unknown node") {
			return fmt.Errorf("forgetting the node on %s: %w", o.host.Name(), err)
		}
		return nil
	})
}

// awaitDisowned waits until no other member names a node as the owner of a slot. A member that
// forgets an owner has slots without one, and answers CLUSTERDOWN to all clients under
// cluster-require-full-coverage until gossip names the new owner.
func (c *cluster) awaitDisowned(ctx context.Context, m *member, id string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, gossipTimeout, fmt.Errorf("members do not know the new owners after %v", gossipTimeout))
	defer cancel()
	return c.Servers.Await(ctx, func(ctx context.Context) error {
		views, err := c.readViews(ctx)
		if err != nil {
			return err
		}
		for _, v := range views {
			for _, p := range v.peers {
				if v.member != m && p.id == id && p.countSlots() > 0 {
					return fmt.Errorf("%w: %s still assigns it %d slots", database.ErrNotReady, v.host.Name(), p.countSlots())
				}
			}
		}
		return nil
	})
}

const (
	// drainQuiet is the time without redirects after which a node may leave, well above a client's refresh time.
	drainQuiet = 500 * time.Millisecond
	// drainTimeout bounds the wait for clients that never read the new slot map.
	drainTimeout = 5 * time.Second
)

func (m *member) awaitQuiet(ctx context.Context) error {
	last, began := "", time.Now()
	for quiet := began; time.Since(quiet) < drainQuiet && time.Since(began) < drainTimeout; {
		stats, err := m.admin.Info(ctx, "errorstats").Result()
		if err != nil {
			return fmt.Errorf("querying the server on %s: %w", m.host.Name(), err)
		}
		if moved := parseRedirects(stats); moved != last {
			last, quiet = moved, time.Now()
		}
		if err := linger.For(ctx, pollInterval); err != nil {
			return err
		}
	}
	return nil
}

// parseRedirects finds "errorstat_MOVED:count=12" in INFO errorstats.
func parseRedirects(stats string) string {
	for line := range strings.Lines(stats) {
		if strings.HasPrefix(line, "errorstat_MOVED:") {
			return line
		}
	}
	return ""
}

// failoverPatience is the time for a failover beyond cluster_node_timeout.
const failoverPatience = 30 * time.Second

// defaultNodeTimeout is Redis' own cluster-node-timeout.
const defaultNodeTimeout = 15 * time.Second

type loss struct {
	views []view
	self  peer
	owner bool // it owns slots
	heirs bool // a replica can take them over
}

// checkRemoval refuses the removal of a master without replicas that leaves too few masters.
func (c *cluster) checkRemoval(ctx context.Context, m *member) (lost loss, err error) {
	views, err := c.readAnsweringViews(ctx)
	if err != nil {
		return lost, err
	}
	lost.views = answeringViews(views, m)
	self, known := findPeer(lost.views, m.addr)
	if !known {
		return lost, fmt.Errorf("no running member knows the node: %w", database.ErrNotMember)
	}
	lost.self, lost.owner = self, self.countSlots() > 0
	masters := 0
	for _, p := range lost.views[0].peers {
		lost.heirs = lost.heirs || p.master == self.id && !p.hasFlag("fail")
		if p.hasFlag("master") && p.countSlots() > 0 {
			masters++
		}
	}
	if lost.owner && !lost.heirs && masters <= minMasters {
		return lost, advice.With(fmt.Errorf("%w: %s", database.ErrFixed, fewMasters), "halt and revive it instead")
	}
	return lost, nil
}

// removeLost removes a lost node. It kills the node's process first.
//
//	a replica                 is forgotten
//	a master with replicas    is forgotten after a failover to a replica
//	a master without          is forgotten, and its slots go to the others, empty: its rows
//	                          are lost. A revive would keep them.
func (c *cluster) removeLost(ctx context.Context, m *member, lost loss, timer *daemon.ChangeTimer) error {
	if m.MarkHalted() {
		if err := m.Kill(); err != nil {
			return err
		}
	}
	if lost.owner && lost.heirs {
		c.ReportProgress("a replica takes over from %s", m.host.Name())
		if err := c.awaitFailover(ctx, m); err != nil {
			return err
		}
	}
	if err := c.forgetMember(ctx, m, lost.self.id); err != nil {
		return err
	}
	timer.Accept()
	if err := c.removeMember(ctx, m); err != nil {
		return err
	}
	if lost.owner && !lost.heirs {
		slots := lost.self.countSlots()
		c.Log.Warn("rows are lost: the node that left held the only copy", "database", c.kind.name, "node", m.host.Name(), "slots", slots)
		c.ReportProgress("the %d slots of %s are reassigned, empty", slots, m.host.Name())
		if err := c.distributeSlots(ctx, lost.views, lost.self); err != nil {
			return err
		}
	}
	return c.repair(ctx)
}

func answeringViews(views []view, but *member) []view {
	var some []view
	for _, v := range views {
		if v.peers != nil && v.member != but {
			some = append(some, v)
		}
	}
	return some
}

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
			return fmt.Errorf("%w: %d slots have no master", database.ErrNotReady, p.countSlots())
		}
		return nil
	})
}

// distributeSlots assigns the slots of a forgotten node to the remaining masters, moving ones to their targets.
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
				return fmt.Errorf("assigning slots of the lost node to %s: %w", h.host.Name(), err)
			}
			return nil
		})
	}
	return g.Wait()
}
