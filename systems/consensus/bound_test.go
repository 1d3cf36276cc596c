package consensus

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
)

// TestBoundOfAFollower pauses, crashes and partitions a member whose consumer has lost its state, so
// that all logs are as long as their bound allows. When the member resumes, it receives more entries at
// once than its log may hold. The log must never exceed its bound, every proposal must succeed, and the
// member must catch up.
func TestBoundOfAFollower(t *testing.T) {
	for seed := range uint64(6) {
		opt := simOptions{members: 3, delay: 2 * time.Millisecond, bound: 1 << 20}
		found, _, stats := play(seed, opt, slog.New(slog.DiscardHandler), func(s *sim) { s.bounded(seed) })
		if found != "" {
			t.Errorf("seed %d: %s", seed, found)
		}
		if stats.acked < 100 {
			t.Errorf("seed %d: only %d proposals were done", seed, stats.acked)
		}
	}
}

func (s *sim) bounded(seed uint64) {
	leader, follower, other := s.three()
	follower.lost = true
	working, writes := true, 0
	var work func()
	work = func() {
		if !working {
			return
		}
		s.after(3*time.Millisecond, work)
		if leader.m.role != raft.StateLeader {
			s.fail("the leader changed")
		}
		writes++
		leader.m.propose(append(fmt.Append(nil, "write ", writes), make([]byte, 4<<10+s.rng.IntN(16<<10))...), func(_ uint64, err error) {
			if err == nil {
				s.stats.acked++
			}
		})
		s.settle(leader)
	}
	work()
	s.checkBound(follower)
	for range 8 {
		s.until(s.now + 200*time.Millisecond + s.ms(300))
		switch seed % 3 {
		case 0:
			follower.paused = s.now + 100*time.Millisecond + s.ms(300)
		case 1:
			s.stop(follower)
			follower.fs.Crash()
			s.until(s.now + s.ms(300))
			s.boot(follower, nil)
		case 2: // the member that applies cannot send, and the leader has applied nothing itself
			leader.lost = true
			s.cut[[2]uint64{other.id, follower.id}], s.cut[[2]uint64{follower.id, other.id}] = true, true
			s.after(s.ms(600), func() { clear(s.cut); leader.lost = false })
		}
	}
	working, follower.lost = false, false
	clear(s.cut)
	for limit := s.now + 200*simElection; follower.m.published.index < leader.m.published.index; {
		if s.until(s.now + simElection); s.now > limit {
			s.fail("the member has %d of %d entries", follower.m.published.index, leader.m.published.index)
		}
	}
}

// TestFollowerAcceptsEntriesOfFullLeader applies no entries, so no log may drop any, and lets one follower
// complete the majority. The follower must accept all entries that the leader accepted before its log was full.
func TestFollowerAcceptsEntriesOfFullLeader(t *testing.T) {
	opt := simOptions{members: 3, delay: 2 * time.Millisecond, bound: 1 << 20}
	found, _, _ := play(1, opt, slog.New(slog.DiscardHandler), func(s *sim) {
		leader, follower, other := s.three()
		for _, n := range s.nodes {
			n.lost = true
		}
		s.stop(other)
		s.checkBound(follower)
		full := false
		for i := 0; !full; i++ {
			leader.m.propose(append(fmt.Append(nil, "write ", i), make([]byte, 12<<10)...), func(_ uint64, err error) { full = full || errors.Is(err, ErrLogFull) })
			s.settle(leader)
			s.until(s.now + 3*time.Millisecond)
		}
		last, err := leader.log.LastIndex()
		if err != nil {
			s.fail("%v", err)
		}
		for limit := s.now + 200*simElection; follower.m.published.index < last; {
			if s.until(s.now + simElection); s.now > limit {
				s.fail("the member has %d of %d entries", follower.m.published.index, last)
			}
		}
	})
	if found != "" {
		t.Fatal(found)
	}
}

// three starts three members without random faults and waits for a leader.
func (s *sim) three() (leader, follower, other *simNode) {
	s.calm = true
	var all []Member
	for i := range uint64(3) {
		all = append(all, Member{ID: i + 1, Site: fmt.Sprint(i), Role: Voter})
	}
	for _, m := range all {
		s.boot(s.newNode(m.ID, false), all)
	}
	s.until(30 * simElection)
	leader = s.leader()
	for _, n := range s.nodes {
		switch {
		case n == leader:
		case follower == nil:
			follower = n
		default:
			other = n
		}
	}
	return leader, follower, other
}

// checkBound checks from now on that a member's log stays within its bound. Segment boundaries and the
// last entry may exceed it.
func (s *sim) checkBound(n *simNode) {
	most := s.opt.bound + 2*segmentSize(s.opt.bound)
	if got := n.log.Usage().Bytes; got > most {
		s.fail("the log of member %d has %d bytes, its bound is %d", n.id, got, s.opt.bound)
	}
	s.after(time.Millisecond, func() { s.checkBound(n) })
}
