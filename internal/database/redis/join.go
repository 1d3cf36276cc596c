package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

const undoTimeout = 60 * time.Second

// Join implements database.Cluster, by the documented steps:
//
//	meet        accepted: the new node has been introduced
//	  wait      until every member knows it; earlier moves of slots can fail half-way
//	slots       move to the node with their keys, or the node becomes a replica
//	  wait      complete: all members name the same owner for every slot
func (c *cluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	var master *member
	return c.RunJoin(ctx, node, daemon.JoinSteps{
		Check: func(ctx context.Context) (err error) {
			if err := errors.Join(c.Ready(ctx), c.repair(ctx)); err != nil {
				return err
			}
			master, err = c.chooseMaster(ctx, node)
			return err
		},
		Join: func(ctx context.Context, timer *daemon.ChangeTimer) error {
			m, err := c.startNew(ctx, node, true)
			if err != nil {
				return err
			}
			c.Add(m)
			if err := c.admit(ctx, m, master, timer); err != nil {
				return c.undoJoin(ctx, m, err)
			}
			return c.checkByCLI(ctx)
		},
	})
}

// admit makes a new server a master with its share of the slots, or a replica if master is not nil.
func (c *cluster) admit(ctx context.Context, m, master *member, timer *daemon.ChangeTimer) error {
	if err := c.introduceMember(ctx, m); err != nil {
		return err
	}
	timer.Accept()
	if err := c.awaitJoin(ctx, m, c.Ready); err != nil {
		return err
	}
	if master != nil {
		c.ReportProgress("%s becomes a replica of %s", m.host.Name(), master.host.Name())
		if err := m.replicateFrom(ctx, master); err != nil {
			return err
		}
	} else {
		bytes, err := c.rebalance(ctx, nil)
		timer.Moved(bytes)
		if err != nil {
			return err
		}
	}
	if err := c.awaitJoin(ctx, m, c.checkSettled); err != nil {
		return err
	}
	return m.Server().ConfirmMember()
}

// awaitJoin waits until check returns nil, the joining server ends or another member is halted.
func (c *cluster) awaitJoin(ctx context.Context, m *member, check func(context.Context) error) error {
	err := c.Servers.Await(ctx, func(ctx context.Context) error {
		if !m.Server().Running() || c.checkNoneHalted() != nil {
			return nil // reported below
		}
		return check(ctx)
	})
	if err == nil && m.Server().Running() {
		err = c.checkNoneHalted()
	}
	return err
}

// chooseMaster returns the master for a new replica, or nil for a new master. It prefers the fewest replicas, then
// another site than the node's.
func (c *cluster) chooseMaster(ctx context.Context, node host.Host) (*member, error) {
	if c.options.joinAs == joinMaster || c.options.joinAs == joinAuto && c.options.replicas == 0 {
		return nil, nil
	}
	views, err := c.masterViews(ctx)
	if err != nil {
		return nil, err
	}
	var best view
	fewest := 0
	for _, v := range views {
		n := 2 * len(v.replicas())
		if v.host.Site() == node.Site() {
			n++
		}
		if best.member == nil || n < fewest {
			best, fewest = v, n
		}
	}
	if c.options.joinAs == joinAuto && fewest/2 >= c.options.replicas {
		return nil, nil
	}
	return best.member, nil
}

func (c *cluster) introduceMember(ctx context.Context, m *member) error {
	others := c.others(m)
	if c.options.rebalance == rebalanceCLI {
		return c.runCLI(ctx, "add-node", m.addr, others[0].addr)
	}
	client := m.openChanger(c.Env.Control)
	defer client.Close()
	pipe := client.Pipeline()
	for _, o := range others {
		c.queueMeet(ctx, pipe, o)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("introducing the node to the members: %w", err)
	}
	return nil
}

func (c *cluster) checkSettled(ctx context.Context) error {
	if err := c.Ready(ctx); err != nil {
		return err
	}
	return c.checkNoMoves(ctx)
}

// checkEpochs returns nil if all running members know each other's epochs and no two masters
// share an epoch. An earlier claim on a slot may have a lower epoch than the old owner's
// claim. A third node that knows only the old claim would then make the new owner give the
// slot back, which deletes its records.
func (c *cluster) checkEpochs(ctx context.Context) error {
	views, err := c.readViews(ctx)
	if err != nil {
		return err
	}
	epoch, holder := make(map[string]int64), make(map[int64]string)
	for _, v := range views {
		epoch[v.self.id] = v.self.epoch
		if v.self.countSlots() == 0 {
			continue
		}
		if other, taken := holder[v.self.epoch]; taken {
			return fmt.Errorf("%w: %s and %s have the same epoch", database.ErrNotReady, v.host.Name(), other)
		}
		holder[v.self.epoch] = v.host.Name()
	}
	for _, v := range views {
		for _, p := range v.peers {
			if e, there := epoch[p.id]; there && p.master == "" && p.epoch != e {
				return fmt.Errorf("%w: %s does not know the epoch of %s", database.ErrNotReady, v.host.Name(), p.addr)
			}
		}
	}
	return nil
}

// gossipTimeout bounds the wait for gossip, which members exchange every second.
const gossipTimeout = 30 * time.Second

// awaitEpochs waits for checkEpochs, which must precede every change of slot owners.
func (c *cluster) awaitEpochs(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, gossipTimeout, fmt.Errorf("the members do not agree after %v", gossipTimeout))
	defer cancel()
	return c.Servers.Await(ctx, c.checkEpochs)
}

var errOpenSlots = errors.New("slots are moving")

func (c *cluster) checkNoMoves(ctx context.Context) error {
	views, err := c.readViews(ctx)
	if err != nil {
		return err
	}
	for _, v := range views {
		if v.self.countMoves() > 0 {
			return fmt.Errorf("%w at %s", errOpenSlots, v.host.Name())
		}
	}
	return nil
}

// undoJoin repairs the cluster after a failed join. A node that already has slots stays a member.
func (c *cluster) undoJoin(ctx context.Context, m *member, cause error) error {
	if c.Err() != nil {
		return errors.Join(cause, c.Err()) // a server died: there is nothing to repair with
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	if !m.Server().Running() {
		m.MarkHalted()
		return errors.Join(cause, c.undoLostJoin(ctx, m))
	}
	if err := c.repair(ctx); err != nil {
		return errors.Join(cause, err)
	}
	v, err := m.readView(ctx)
	if err != nil {
		return errors.Join(cause, err)
	}
	if n := v.self.countSlots(); n > 0 {
		return errors.Join(fmt.Errorf("%w; the node stays a member with %d slots", cause, n), m.Server().ConfirmMember())
	}
	if len(v.peers) > 1 {
		if err := c.forgetMember(ctx, m, v.self.id); err != nil {
			return errors.Join(cause, err)
		}
	}
	return errors.Join(cause, c.removeMember(ctx, m))
}

// undoLostJoin removes a node that ended while it joined. With rows it stays a halted member.
func (c *cluster) undoLostJoin(ctx context.Context, m *member) error {
	views, err := c.readViews(ctx)
	if err != nil {
		return err
	}
	p, known := findPeer(views, m.addr)
	n := p.countSlots()
	for _, v := range views {
		for _, to := range v.self.migrating {
			if to == p.id {
				n++
			}
		}
	}
	if n > 0 {
		return advice.With(fmt.Errorf("the node stays a halted member with %d slots", n), "revive it")
	}
	if known {
		if err := c.forgetMember(ctx, m, p.id); err != nil {
			return err
		}
	}
	return errors.Join(c.removeMember(ctx, m), c.repair(ctx))
}

// findPeer returns the members' state of a node, from the view with the most slots for it.
func findPeer(views []view, addr string) (found peer, known bool) {
	for _, v := range views {
		for _, p := range v.peers {
			if p.addr == addr && (!known || p.countSlots() > found.countSlots()) {
				found, known = p, true
			}
		}
	}
	return found, known
}

func (v view) replicas() (of []peer) {
	for _, p := range v.peers {
		if p.master == v.self.id {
			of = append(of, p)
		}
	}
	return of
}

func (c *cluster) others(but *member) []*member {
	var others []*member
	for _, m := range c.runningMembers() {
		if m != but {
			others = append(others, m)
		}
	}
	return others
}
