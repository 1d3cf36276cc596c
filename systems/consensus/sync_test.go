package consensus

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
)

// TestWriteCosts checks the cost of a single write: one sync of each member's log, although a follower learns
// of the commit after the entry, and three messages per follower: the entry, its acknowledgement and the commit.
func TestWriteCosts(t *testing.T) {
	const members, writes = 3, 50
	found, _, _ := play(1, simOptions{members: members}, slog.New(slog.DiscardHandler), func(s *sim) {
		leader, _, _ := s.three()
		syncs := func() (sum uint64) {
			for _, n := range s.nodes {
				sum += n.log.Usage().Syncs
			}
			return sum
		}
		s.until(s.now + simElection) // until the log has its identity
		before, sent := syncs(), s.entries
		for i := range writes {
			acked := false
			leader.m.propose(fmt.Append(nil, "write ", i), func(_ uint64, err error) { acked = err == nil })
			s.settle(leader)
			for limit := s.now + simElection; !acked && s.now < limit; {
				s.until(s.now + time.Millisecond)
			}
			if !acked || leader.m.role != raft.StateLeader {
				s.fail("write %d is not acknowledged", i)
			}
			s.until(s.now + 10*time.Millisecond)
		}
		// Closing a segment needs a sync, too, and heartbeats can cause entries to be sent again.
		if got, want := syncs()-before, uint64(members*writes); got > want+want/10 {
			t.Errorf("%d writes at %d members took %d syncs, want at most %d", writes, members, got, want)
		}
		if got, want := s.entries-sent, 3*(members-1)*writes; got > want+want/5 {
			t.Errorf("%d writes took %d messages about entries, want at most %d", writes, got, want)
		}
	})
	if found != "" {
		t.Fatal(found)
	}
}
