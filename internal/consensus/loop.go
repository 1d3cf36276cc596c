package consensus

import (
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// loop drives the machine: it takes what came in, all at once, and carries out what the
// machine wants. It is the only one that touches the machine.
func (n *Node) loop() {
	defer n.end()
	defer func() {
		if p := recover(); p != nil {
			n.fail(brokenError(p))
		}
	}()
	timer := time.NewTimer(n.tickTime())
	defer timer.Stop()
	due := time.Now().Add(n.tickTime())
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.inbox.wake:
		case <-timer.C:
		}
		n.inbox.Lock()
		events := n.inbox.events
		n.inbox.events = nil
		n.inbox.Unlock()
		for _, do := range events {
			do()
		}
		// A tick comes after what arrived before it, and those that were missed, as by
		// a suspended process, are not made up for: they would look like a lost leader.
		if now := time.Now(); !now.Before(due) {
			n.m.tick(now)
			n.adapt()
			due = now.Add(n.tickTime())
			timer.Reset(n.tickTime())
		}
		n.carryOut(n.m.settle())
		if n.m.removed {
			n.fail(ErrRemoved)
			return
		}
	}
}

func (n *Node) tickTime() time.Duration {
	return time.Duration(n.election.Load()) / electionTicks
}

// adapt sets the election timeout by the round trips that the leader measures, and tells
// the others by its heartbeats. Changes of less than a tenth are not worth a message.
func (n *Node) adapt() {
	if n.cfg.Election != 0 || !n.m.isLeader() {
		return
	}
	var slowest time.Duration
	for _, id := range n.m.conf.State.Voters {
		if p := n.tr.peer(id); p != nil {
			most, known := p.roundTrip()
			if !known {
				return
			}
			slowest = max(slowest, most)
		}
	}
	was, is := time.Duration(n.election.Load()), electionTimeout(slowest)
	if diff := (is - was).Abs(); diff > was/10 || is == minElection || is == maxElection {
		n.election.Store(int64(is))
	}
}

func (n *Node) carryOut(out output) {
	if len(out.store) > 0 {
		n.store.Lock()
		n.store.queue = append(n.store.queue, out.store...)
		n.store.Unlock()
		select {
		case n.store.wake <- struct{}{}:
		default:
		}
	}
	for _, m := range out.messages {
		n.transmit(m)
	}
	n.look(out.changed)
	if out.published {
		n.published.Store(n.m.published.index)
		n.mu.Lock()
		close(n.more)
		n.more = make(chan struct{})
		n.mu.Unlock()
	}
	for _, r := range out.resolved {
		r.p.done(r.index, r.err)
	}
	for _, r := range out.read {
		r.r.done(r.index, r.err)
	}
}

// transmit sends a message, and tells raft when one of its own was dropped.
func (n *Node) transmit(m message) {
	if !n.tr.send(m) && m.raft.GetType() == raftpb.MsgApp {
		n.m.unreachable(m.to)
	}
}

// look brings what callers see up to date.
func (n *Node) look(changed bool) {
	leads := n.m.isLeader()
	var members []Member
	if changed {
		members = n.members()
	}
	n.mu.Lock()
	notify := changed || leads != n.view.leads
	n.view.leads, n.view.term = leads, n.m.term
	if changed {
		n.view.lead = n.m.lead
		n.view.members = members
		n.view.self = n.cfg.Self
		if self, ok := n.m.conf.member(n.cfg.Self.ID); ok {
			n.view.self = self
		}
	}
	if notify {
		close(n.changed)
		n.changed = make(chan struct{})
	}
	n.mu.Unlock()
	if changed {
		n.tr.setMembers(members, n.m.conf.Removed)
	}
}

// move is a member's address in the log when the node started, and in its configuration.
type move struct{ from, to string }

// findMoved notes which members are elsewhere than the log has them.
func (n *Node) findMoved() {
	n.moved = map[uint64]move{}
	for _, c := range n.cfg.Members {
		if m, ok := n.m.conf.member(c.ID); ok && c.Addr != "" && c.Addr != m.Addr {
			n.moved[c.ID] = move{m.Addr, c.Addr}
		}
	}
}

// members are the members where they are.
func (n *Node) members() []Member {
	members := slices.Clone(n.m.conf.Members)
	for i, m := range members {
		if mv, ok := n.moved[m.ID]; ok && mv.from == m.Addr {
			members[i].Addr = mv.to
		}
	}
	return members
}

// end closes everything once the loop has ended.
func (n *Node) end() {
	n.cancel()
	n.inbox.Lock()
	n.inbox.closed = true
	n.inbox.Unlock()
	n.tr.close()
	n.wg.Wait()
	for _, p := range n.m.props.pending {
		if p.term != 0 {
			p.done(0, inDoubt(n.closed()))
		} else {
			p.done(0, notDone(n.closed()))
		}
	}
	n.snap.close()
	if err := n.log.Close(); err != nil {
		n.logger.Warn("closing the log failed", "err", err)
	}
	close(n.done)
}
