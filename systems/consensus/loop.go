package consensus

import (
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

func (n *Node) loop() {
	defer n.end()
	timer := time.NewTimer(n.tickTime())
	defer timer.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.later:
			n.tr.flushAll()
		case <-timer.C:
			// A tick follows all earlier events. Missed ticks are not repeated: they would look like a lost leader.
			if n.ticking.CompareAndSwap(false, true) {
				n.post(n.tick)
			}
			timer.Reset(n.tickTime())
		}
	}
}

func (n *Node) tick() {
	n.ticking.Store(false)
	n.m.tick(time.Now())
	n.adaptElection()
}

// drive lets the machine handle all waiting events, and carries out its actions. The goroutine that brings an event drives,
// unless another one does: that one checks for events again before it stops, so that none is left. So a proposal, a message
// and its answer wake no further goroutine.
func (n *Node) drive() {
	for n.hasEvents() && n.driving.TryLock() {
		n.driveOnce()
		n.driving.Unlock()
	}
}

func (n *Node) hasEvents() bool {
	n.inbox.Lock()
	defer n.inbox.Unlock()
	return len(n.inbox.events) > 0 && !n.inbox.closed
}

// driveOnce handles the waiting events. The caller holds driving, which guards the machine.
func (n *Node) driveOnce() {
	defer func() {
		if p := recover(); p != nil {
			n.fail(brokenError(p))
		}
	}()
	n.inbox.Lock()
	events := n.inbox.events
	n.inbox.events = nil
	n.inbox.Unlock()
	if n.ctx.Err() != nil {
		return // end resolves what waits
	}
	for _, do := range events {
		do()
	}
	n.carryOut(n.m.settle())
	if n.m.membership.removed {
		n.fail(ErrRemoved)
	}
}

func (n *Node) tickTime() time.Duration {
	return time.Duration(n.election.Load()) / electionTicks
}

// adaptElection derives the election timeout from the round trips that the leader measures. Heartbeats carry it to the
// others. It ignores changes of less than a tenth.
func (n *Node) adaptElection() {
	if n.cfg.Election != 0 || !n.m.isLeader() {
		return
	}
	var slowest time.Duration
	for _, id := range n.m.membership.conf.State.Voters {
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
	n.transmit(out.messages)
	n.publishView(out.changed)
	if out.published {
		n.published.Store(n.m.published.index)
		n.mu.Lock()
		close(n.more)
		n.more = make(chan struct{})
		n.mu.Unlock()
	}
	// Callbacks come last, so that their callers run next.
	for _, r := range out.resolved {
		r.p.done(r.index, r.err)
	}
	for _, r := range out.read {
		r.r.done(r.index, r.err)
	}
}

// transmit queues messages, and flushes at once those that a member waits for. Messages that carry only commits are left
// to the loop, or to the next flush. It reports to raft if a message with entries was dropped.
func (n *Node) transmit(messages []message) {
	var at [maxTogether]uint64
	urgent := at[:0]
	left := false
	for _, m := range messages {
		switch {
		case !n.tr.send(m):
			if m.raft.GetType() == raftpb.MsgApp {
				n.m.reportUnreachable(m.to)
			}
		case m.raft.GetType() == raftpb.MsgApp && len(m.raft.GetEntries()) == 0:
			left = true
		case !slices.Contains(urgent, m.to):
			urgent = append(urgent, m.to)
		}
	}
	for _, id := range urgent {
		n.tr.flush(id)
	}
	if left {
		select {
		case n.later <- struct{}{}:
		default:
		}
	}
}

func (n *Node) publishView(changed bool) {
	leads := n.m.isLeader()
	var members []Member
	if changed {
		members = n.members()
	}
	n.mu.Lock()
	notify := changed || leads != n.view.leads
	n.view.leads, n.view.term = leads, n.m.term
	if changed {
		n.view.lead = n.m.leaderID
		n.view.members = members
		n.view.identity = n.m.membership.conf.identity()
		n.view.self = n.cfg.Self
		if self, ok := n.m.membership.conf.member(n.cfg.Self.ID); ok {
			n.view.self = self
		}
	}
	if notify {
		close(n.changed)
		n.changed = make(chan struct{})
	}
	n.mu.Unlock()
	if changed {
		n.tr.name.Store(n.m.membership.conf.Log)
		n.tr.setMembers(members, n.m.membership.conf.Removed)
	}
}

// maxTogether is the number of members that are sent messages at once without an allocation.
const maxTogether = 8

// move is a member's address in the log when the node started, and in its configuration.
type move struct{ from, to string }

func (n *Node) findMovedMembers() {
	n.moved = map[uint64]move{}
	for _, c := range n.cfg.Members {
		if m, ok := n.m.membership.conf.member(c.ID); ok && c.Addr != "" && c.Addr != m.Addr {
			n.moved[c.ID] = move{m.Addr, c.Addr}
		}
	}
}

func (n *Node) members() []Member {
	members := slices.Clone(n.m.membership.conf.Members)
	for i, m := range members {
		if mv, ok := n.moved[m.ID]; ok && mv.from == m.Addr {
			members[i].Addr = mv.to
		}
	}
	return members
}

func (n *Node) end() {
	n.cancel()
	n.inbox.Lock()
	n.inbox.closed = true
	n.inbox.Unlock()
	n.tr.close()
	n.wg.Wait()
	n.driving.Lock() // waits for the last driver
	defer n.driving.Unlock()
	for _, p := range n.m.proposals.pending {
		if p.term != 0 {
			p.done(0, inDoubt(n.closed()))
		} else {
			p.done(0, notDone(n.closed()))
		}
	}
	n.snap.close()
	if late := n.m.commits.late; late != nil {
		if err := (store{n.log}).write(request{write: late}); err != nil {
			n.logger.Debug("the last commit is not in the log", "err", err)
		}
	}
	if err := n.log.Close(); err != nil {
		n.logger.Warn("closing the log failed", "err", err)
	}
	close(n.done)
}
