package consensus

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
)

// TestBoundOfAFollower has a member whose consumer has lost its state, so that all logs are as long
// as they may be, stop in its tracks, begin again after a crash, and be out of reach of who applies:
// when it goes on, more comes at once than its log may hold. The log stays within its bound all the
// while, everything proposed is done, and the member catches up.
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
			s.fail("the leader is another")
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
	s.lookAt(follower)
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
		case 2: // who applies cannot be heard, and the leader has applied nothing itself
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

// TestFollowerAcceptsEntriesOfFullLeader applies nothing, so that nothing may be dropped, and one follower
// alone make the majority: it takes all that the leader took before that was full.
func TestFollowerAcceptsEntriesOfFullLeader(t *testing.T) {
	opt := simOptions{members: 3, delay: 2 * time.Millisecond, bound: 1 << 20}
	found, _, _ := play(1, opt, slog.New(slog.DiscardHandler), func(s *sim) {
		leader, follower, other := s.three()
		for _, n := range s.nodes {
			n.lost = true
		}
		s.stop(other)
		s.lookAt(follower)
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

// three are members that have a leader, and nothing goes wrong by itself.
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

// lookAt holds a member's log to its bound from now on: boundaries between segments, and the entry that
// is the last, are beyond it.
func (s *sim) lookAt(n *simNode) {
	most := s.opt.bound + 2*segmentSize(s.opt.bound)
	if got := n.log.Usage().Bytes; got > most {
		s.fail("the log of member %d takes %d bytes, its bound is %d", n.id, got, s.opt.bound)
	}
	s.after(time.Millisecond, func() { s.lookAt(n) })
}
