package consensus

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// ackTicks is for how long an acknowledgement is not repeated.
const ackTicks = electionTicks / 2

// ackFilter is the last acknowledgement that this member has given. After its entries a
// leader sends each commit, which raft acknowledges as well: the same index again, a message
// and its reading for each follower and write.
//
// Such a repetition is left out for a while only, counted from the first, since that may be lost:
//
//  1. a follower acknowledges entry 7, and the connection breaks;
//  2. the leader, which has seen no sign of 7, sends an empty message at every heartbeat;
//  3. left out for ever, 7 would never be known to be on the follower's disk.
//
// Where a connection is known to have broken nothing is left out.
type ackFilter struct {
	to, term, index uint64
	tick            int
}

// dropRepeated takes repetitions out of the answers to what is to be stored.
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

// reset has the next acknowledgement given whatever was before.
func (a *ackFilter) reset() { *a = ackFilter{} }
