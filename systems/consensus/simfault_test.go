package consensus

import (
	"errors"
	"fmt"
	"time"
)

// client proposes and reads at random nodes.
func (s *sim) client() {
	if s.calm {
		return
	}
	s.after(s.ms(25), s.client)
	n := s.nodes[s.rng.IntN(len(s.nodes))]
	if n.m == nil || n.paused > s.now {
		return
	}
	if s.rng.IntN(3) == 0 {
		s.read(n)
		return
	}
	for range 1 + s.rng.IntN(4) {
		s.propose(n)
	}
	s.settle(n)
}

func (s *sim) propose(n *simNode) *simProposal {
	p := &simProposal{value: fmt.Sprintf("value %d", len(s.proposals))}
	s.proposals = append(s.proposals, p)
	h := n.m.propose([]byte(p.value), func(index uint64, err error) {
		switch {
		case p.state != "":
			s.fail("proposal %q was resolved twice", p.value)
		case err == nil:
			p.state, p.index = "ok", index
			s.acked = max(s.acked, index)
			s.stats.acked++
		case errors.Is(err, ErrNotDone):
			p.state = "not done"
			s.stats.notDone++
		case errors.Is(err, ErrInDoubt):
			p.state = "in doubt"
			s.stats.inDoubt++
		default:
			s.fail("%q: %v", p.value, err)
		}
	})
	s.at(n, 100*time.Millisecond+s.ms(1500), func() {
		n.m.cancelProposal(h, errors.New("timeout"))
		s.settle(n)
	})
	return p
}

func (s *sim) read(n *simNode) {
	least, canceled := s.acked, error(nil)
	n.m.readIndex(&read{
		canceled: func() error { return canceled },
		done: func(index uint64, err error) {
			if err == nil && index < least {
				s.fail("member %d reads at %d although entry %d was acknowledged before", n.id, index, least)
			}
			s.stats.reads++
		},
	})
	s.at(n, 500*time.Millisecond, func() { canceled = errors.New("timeout") })
	s.settle(n)
}

func (s *sim) stop(n *simNode) {
	n.life++
	n.m = nil
}

// fault injects a random fault.
func (s *sim) fault() {
	if s.calm {
		return
	}
	s.after(20*time.Millisecond+s.ms(300), s.fault)
	n := s.nodes[s.rng.IntN(len(s.nodes))]
	if n.gone {
		return
	}
	switch s.rng.IntN(10) {
	case 0, 1, 2:
		s.crash(n)
		if s.rng.IntN(6) == 0 {
			for _, o := range s.nodes {
				if !o.gone {
					s.crash(o)
				}
			}
		}
	case 3, 4:
		// A partition, possibly in one direction only.
		for _, a := range s.nodes {
			for _, b := range s.nodes {
				if a == n != (b == n) && s.rng.IntN(4) != 0 {
					s.cut[[2]uint64{a.id, b.id}] = true
				}
			}
		}
		s.after(s.ms(600), func() { clear(s.cut) })
	case 5:
		n.paused = s.now + s.ms(400)
	case 6:
		if n.m != nil {
			n.m.requestTransfer(s.nodes[s.rng.IntN(len(s.nodes))].id)
			s.settle(n)
		}
	case 7:
		if s.opt.full {
			n.fs.Capacity = n.fs.Bytes() + int64(s.rng.IntN(500))
			s.after(s.ms(500), func() { n.fs.Capacity = 0 })
		}
	case 9:
		// Members wrongly suspect the leader.
		for _, o := range s.nodes {
			if o.m != nil && s.rng.IntN(2) == 0 {
				s.suspect(o, n.id)
			}
		}
	case 8:
		if s.opt.change {
			s.changeMembers(n)
		}
	}
}

// changeMembers adds a member, or removes one of more than three.
func (s *sim) changeMembers(n *simNode) {
	if n.m == nil || n.paused > s.now {
		return
	}
	running := 0
	for _, o := range s.nodes {
		if !o.gone {
			running++
		}
	}
	ch := confChange{Op: opRemove, Member: Member{ID: s.nodes[s.rng.IntN(len(s.nodes))].id}}
	if running <= 3 || running < 6 && s.rng.IntN(2) == 0 {
		o := s.newNode(uint64(len(s.nodes)+1), true)
		s.boot(o, nil)
		ch = confChange{Op: opSet, Member: Member{ID: o.id, Role: Voter}}
	}
	h := n.m.proposeChange(ch, func(_ uint64, err error) {
		if err == nil {
			s.stats.changes++
		}
	})
	s.at(n, time.Second, func() {
		n.m.cancelProposal(h, errors.New("timeout"))
		s.settle(n)
	})
	s.settle(n)
}

// suspect schedules a report to a node that another member's machine refuses connections.
func (s *sim) suspect(n *simNode, id uint64) {
	s.at(n, s.ms(2*int(s.opt.delay/time.Millisecond)), func() {
		n.m.suspectLeader(id)
		s.settle(n)
	})
}

func (s *sim) crash(n *simNode) {
	if n.m == nil {
		return
	}
	s.stats.crashes++
	s.stop(n)
	n.fs.Crash()
	for _, o := range s.nodes {
		if o.m != nil && s.rng.IntN(4) != 0 {
			s.suspect(o, n.id)
		}
	}
	s.after(s.ms(500), func() {
		if n.m == nil && !n.gone {
			s.boot(n, nil)
		}
	})
}

// finish ends all faults and waits until all members have all proposals.
func (s *sim) finish(members []Member) {
	s.calm = true
	clear(s.cut)
	for _, n := range s.nodes {
		n.fs.Capacity = 0
	}
	s.until(s.now + 600*time.Millisecond)
	var last *simProposal
	for range 40 {
		if last == nil || last.state != "ok" && last.state != "" {
			n := s.nodes[s.rng.IntN(len(s.nodes))]
			if n.m == nil {
				continue
			}
			last = s.propose(n)
			s.settle(n)
		}
		s.until(s.now + 500*time.Millisecond)
		if last.state == "ok" && s.converged(s.acked) {
			s.check()
			return
		}
	}
	for _, n := range s.nodes {
		if n.m != nil {
			s.logger.Error("not converged", "node", n.id, "state", n.m.role, "term", n.m.term, "lead", n.m.leaderID, "published", n.m.published.index, "applied", n.applied, "queue", len(n.m.proposals.queue), "conf", n.m.membership.conf.State, "storage", n.m.space.err)
		}
	}
	s.fail("20 s after the last fault, the members still do not agree on %+v", last)
}

func (s *sim) converged(index uint64) bool {
	for _, n := range s.nodes {
		if n.m == nil {
			continue
		}
		if _, ok := s.membership().member(n.id); ok && n.applied < index {
			return false
		}
	}
	return true
}

// membership returns the membership of the most advanced member.
func (s *sim) membership() conf {
	var at *simNode
	for _, n := range s.nodes {
		if n.m != nil && (at == nil || n.m.published.index > at.m.published.index) {
			at = n
		}
	}
	return at.m.membership.conf
}

func (s *sim) check() {
	for _, p := range s.proposals {
		at, in := s.where[p.value]
		switch {
		case p.state == "ok" && (!in || at != p.index):
			s.fail("%q was acknowledged at %d, but is lost (%d)", p.value, p.index, at)
		case p.state == "not done" && in:
			s.fail("%q was reported as failed, but is at %d", p.value, at)
		}
	}
}
