package consensus

import "go.etcd.io/raft/v3/raftpb"

// commitNote are what the store is told of commits. One that comes alone goes along with what is
// written next, or at the next tick: others never count on it, and a member that restarts learns
// it from its leader, so that it is worth no write of its own. term and vote are on disk.
type commitNote struct {
	term, vote uint64
	late       *raftpb.Message
}

// merge adds a commit that waits to what is to be written; false: there is nothing to write now.
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

// flushCommit has the store write a commit that waits.
func (m *machine) flushCommit() {
	if m.commits.late != nil {
		m.out.store = append(m.out.store, request{write: m.commits.late})
		m.commits.late = nil
	}
}
