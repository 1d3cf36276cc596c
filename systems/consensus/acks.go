package consensus

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

const ackTicks = electionTicks / 2

// ackFilter remembers the last acknowledgement that this member sent. A leader sends a commit after its entries, and
// raft acknowledges the commit too, with the same index. The filter drops this repetition, which saves a message for
// each follower and write.
//
// Invariant: the filter drops repetitions for ackTicks at most, counted from the first acknowledgement, which may have
// been lost:
//
//  1. A follower acknowledges entry 7, and the connection breaks.
//  2. The leader, which did not receive it, sends an empty message with every heartbeat.
//  3. If the follower never repeated it, the leader would never know that entry 7 is on the follower's disk.
//
// After a connection is known to have failed, the filter drops nothing.
type ackFilter struct {
	to, term, index uint64
	tick            int
}

func (a *ackFilter) dropRepeated(msg *raftpb.Message, tick int) {
	msg.Responses = slices.DeleteFunc(msg.Responses, func(r *raftpb.Message) bool {
		if r.GetType() != raftpb.MsgAppResp || r.GetReject() || r.GetTo() == msg.GetFrom() {
			return false
		}
		if a.to == r.GetTo() && a.term == r.GetTerm() && a.index == r.GetIndex() && tick-a.tick < ackTicks {
			return true
		}
		*a = ackFilter{r.GetTo(), r.GetTerm(), r.GetIndex(), tick}
		return false
	})
}

func (a *ackFilter) reset() { *a = ackFilter{} }

// commitNote delays the write of a commit index that comes alone. It is written with the next entries or at the next
// tick. This is safe: no other member relies on it, and a member that restarts learns it from its leader.
type commitNote struct {
	term, vote uint64 // on disk
	late       *raftpb.Message
}

func (c *commitNote) merge(msg *raftpb.Message) bool {
	stated := msg.Term != nil || msg.Vote != nil || msg.Commit != nil
	same := !stated || msg.GetTerm() == c.term && msg.GetVote() == c.vote
	if stated {
		c.term, c.vote = msg.GetTerm(), msg.GetVote()
	}
	if same && len(msg.GetEntries())+len(msg.GetResponses()) == 0 && msg.GetSnapshot() == nil {
		if stated {
			c.late = msg
		}
		return false
	}
	if c.late != nil && !stated {
		msg.Term, msg.Vote, msg.Commit = c.late.Term, c.late.Vote, c.late.Commit
	}
	c.late = nil
	return true
}

func (m *machine) flushCommit() {
	if m.commits.late != nil {
		m.out.store = append(m.out.store, request{write: m.commits.late})
		m.commits.late = nil
	}
}
