package consensus

import (
	"fmt"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

func (s *sim) send(n *simNode, msg message) {
	var to *simNode
	for _, o := range s.nodes {
		if o.id == msg.to {
			to = o
		}
	}
	if to == nil {
		return
	}
	if kind := msg.raft.GetType(); kind == raftpb.MsgApp || kind == raftpb.MsgAppResp {
		s.entries++
	}
	copies := 1
	if !s.calm && s.rng.Float64() < s.opt.loss {
		copies = s.rng.IntN(2) * 2
	}
	if s.isCut(n.id, to.id) {
		copies = 0
	}
	if copies == 0 && s.rng.IntN(4) == 0 {
		n.m.reportUnreachable(to.id)
	}
	for range copies {
		delay := s.ms(int(s.opt.delay / time.Millisecond))
		if !s.calm && s.rng.IntN(50) == 0 {
			delay += s.ms(400)
		}
		frame, err := encodeMessage(msg)
		if err != nil {
			s.fail("encoding: %v", err)
		}
		s.after(delay, func() {
			life := to.life
			if to.m != nil && !s.isCut(n.id, to.id) && to.life == life {
				s.at(to, 0, func() { s.receive(to, n.id, frame) })
			}
		})
	}
}

func (s *sim) receive(n *simNode, from uint64, frame []byte) {
	msg, err := decodeMessage(n.id, frame)
	if err != nil {
		s.fail("decoding: %v", err)
	}
	fmt.Fprintln(s.trace, s.now, n.id, from, len(frame))
	switch {
	case msg.raft != nil && msg.raft.GetType() == raftpb.MsgSnap:
		if !s.fetch(n, msg.raft.GetSnapshot().GetMetadata().GetIndex()) {
			return
		}
		n.m.step(msg.raft)
	case msg.raft != nil:
		n.m.step(msg.raft)
	case msg.forward != nil:
		n.m.handleForward(from, msg.forward)
	case msg.refusal != nil:
		n.m.handleRefusal(msg.refusal)
	case msg.transfer != 0:
		n.m.requestTransfer(msg.transfer)
	}
	s.settle(n)
}

// fetch copies the state of another consumer, at or after index, to the consumer of n.
func (s *sim) fetch(n *simNode, index uint64) bool {
	for _, o := range s.nodes {
		if o.m == nil || o.applied < index || s.isCut(o.id, n.id) {
			continue
		}
		if self, ok := o.m.membership.conf.member(o.id); ok && self.Role != Witness {
			n.applied = max(n.applied, o.applied)
			n.m.setApplied(n.id, n.applied)
			s.stats.snapshots++
			return true
		}
	}
	return n.applied >= index
}

// work writes the store's pending operations and syncs them after a delay.
func (s *sim) work(n *simNode) {
	if n.busy || len(n.queue) == 0 {
		return
	}
	n.busy = true
	s.at(n, s.ms(2), func() {
		batch := n.queue
		n.queue = nil
		st := store{n.log}
		for i, r := range batch {
			if err := st.write(r); err != nil {
				if r.write == nil && r.conf == nil {
					continue
				}
				n.m.setStorageError(err)
				n.queue = append(slices.Clone(batch[i:]), n.queue...)
				batch = batch[:i]
				break
			}
		}
		failed := len(n.queue) > 0 && len(batch) == 0
		s.at(n, s.ms(5), func() {
			if err := n.log.Sync(); err != nil {
				s.fail("member %d: %v", n.id, err)
			}
			n.busy = false
			if n.m.space.err != nil && len(batch) > 0 {
				n.m.setStorageError(nil)
			}
			for _, r := range batch {
				for _, resp := range r.write.GetResponses() {
					if resp.GetTo() == n.id {
						n.m.step(proto.Clone(resp).(*raftpb.Message))
					} else {
						s.send(n, message{to: resp.GetTo(), raft: resp})
					}
				}
			}
			s.settle(n)
			if failed {
				s.at(n, 20*time.Millisecond, func() { s.work(n) })
			}
		})
	})
}
