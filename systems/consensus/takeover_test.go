package consensus

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
)

// simElection is the election timeout of simulated members.
const simElection = electionTicks * 10 * time.Millisecond

// losing runs many seeds of five members with lose as the only fault. It returns the times from the fault to the
// first acknowledged proposal at a remaining member.
func losing(t *testing.T, prefer string, lose func(s *sim, leader *simNode)) []time.Duration {
	t.Helper()
	var took []time.Duration
	for seed := range uint64(60) {
		opt := simOptions{members: 5, delay: 5 * time.Millisecond, prefer: prefer}
		found, _, _ := play(seed, opt, slog.New(slog.DiscardHandler), func(s *sim) {
			s.calm = true
			var members []Member
			for i := range uint64(opt.members) {
				members = append(members, Member{ID: i + 1, Site: fmt.Sprint(i % 2), Role: Voter})
			}
			members[4].Role = Witness
			for _, m := range members {
				s.boot(s.newNode(m.ID, false), members)
			}
			s.until(30 * simElection)
			leader := s.leader()
			if leader == nil || prefer != "" && members[leader.id-1].Site != prefer {
				s.fail("after %v the leader is %+v", s.now, leader)
			}
			lose(s, leader)
			lost := s.now
			for _, n := range s.nodes {
				if n.m == nil {
					continue
				}
				var acked bool
				n.m.propose([]byte("after"), func(_ uint64, err error) {
					if acked = err == nil; !acked {
						s.fail("after %v: %v", s.now-lost, err)
					}
				})
				s.settle(n)
				for !acked && s.now-lost < 30*simElection {
					s.until(s.now + time.Millisecond)
				}
				took = append(took, s.now-lost)
				break
			}
		})
		if found != "" {
			t.Fatalf("seed %d: %s", seed, found)
		}
	}
	slices.Sort(took)
	t.Logf("median %v, maximum %v; election timeout %v", took[len(took)/2], took[len(took)-1], simElection)
	return took
}

func (s *sim) leader() *simNode {
	for _, n := range s.nodes {
		if n.m != nil && n.m.role == raft.StateLeader {
			return n
		}
	}
	return nil
}

// TestLeaderEnds ends the leader's process; the other members detect it by their closed connections.
func TestLeaderEnds(t *testing.T) {
	took := losing(t, "", func(s *sim, leader *simNode) {
		s.stop(leader)
		for _, n := range s.nodes {
			if n.m != nil { // its last messages arrive before its connections close
				s.at(n, s.opt.delay, func() { s.suspect(n, leader.id) })
			}
		}
	})
	if most := took[len(took)-1]; most > simElection {
		t.Errorf("the slowest takeover took %v, want at most one election timeout", most)
	}
}

// TestLeaderVanishes removes the leader's machine; its connections stay open.
func TestLeaderVanishes(t *testing.T) {
	took := losing(t, "", func(s *sim, leader *simNode) { s.stop(leader) })
	if most := took[len(took)-1]; most > 3*simElection {
		t.Errorf("the slowest takeover took %v, want at most three election timeouts", most)
	}
}

// TestPreferredSiteVanishes removes the preferred site of the leader while the other members still consider
// it reachable.
func TestPreferredSiteVanishes(t *testing.T) {
	took := losing(t, "1", func(s *sim, _ *simNode) {
		s.stop(s.nodes[1])
		s.stop(s.nodes[3])
	})
	if most := took[len(took)-1]; most > 5*simElection {
		t.Errorf("the slowest takeover took %v, want at most five election timeouts", most)
	}
}

// TestHandOverWithoutTarget transfers the leadership to a member that has just vanished. Proposals must not
// wait longer than the attempt, and attempts must become rarer.
func TestHandOverWithoutTarget(t *testing.T) {
	found, _, _ := play(2, simOptions{members: 3, delay: 2 * time.Millisecond}, slog.New(slog.DiscardHandler), func(s *sim) {
		leader, gone, _ := s.three()
		there, _ := leader.m.membership.conf.member(gone.id)
		s.stop(gone)
		leader.m.cfg.preferSite = there.Site
		attempts, last := 0, 0
		for range 100 {
			began := s.now
			p := s.propose(leader)
			s.settle(leader)
			for p.state == "" {
				s.until(s.now + time.Millisecond)
			}
			if took := s.now - began; p.state != "ok" || took > simElection*8/10 {
				s.fail("%q is %q after %v", p.value, p.state, took)
			}
			if tried := leader.m.placement.lastTransfer; tried != last {
				attempts, last = attempts+1, tried
			}
			s.until(s.now + simElection/10)
		}
		if attempts == 0 || attempts > 2 {
			s.fail("there were %d attempts", attempts)
		}
	})
	if found != "" {
		t.Error(found)
	}
}

// TestOutageIsNoRoundTrip answers all pings of an outage at its end.
func TestOutageIsNoRoundTrip(t *testing.T) {
	var r rtt
	for range 50 {
		r.add(40 * time.Millisecond)
	}
	r.add(20 * time.Second)
	if got := r.upperBound(); got > 300*time.Millisecond {
		t.Errorf("round-trip estimate %v after an outage, want about 40 ms as before", got)
	}
	for range 50 {
		r.add(400 * time.Millisecond)
	}
	if got := r.upperBound(); got < 390*time.Millisecond {
		t.Errorf("round-trip estimate %v, want about 400 ms", got)
	}
}

// TestLeaderWithFullDiskHandsOver fills the leader's disk at any time between two quorum checks, while the transfer
// target is unreachable. No proposal may be refused, since another member can lead.
func TestLeaderWithFullDiskHandsOver(t *testing.T) {
	opt := simOptions{members: 3, delay: 5 * time.Millisecond}
	for seed := range uint64(2 * electionTicks) {
		found, _, _ := play(seed, opt, slog.New(slog.DiscardHandler), func(s *sim) {
			leader, other, _ := s.three()
			s.until(s.now + time.Duration(seed)*simElection/electionTicks)
			leader.fs.Capacity = leader.fs.Bytes()
			open, missed := 0, seed%2 == 0
			for i := range 6 * simElection / time.Millisecond {
				open++
				other.m.propose(fmt.Appendf(nil, "value %d", i), func(_ uint64, err error) {
					if open--; err != nil {
						s.fail("%v", err)
					}
				})
				s.settle(other)
				s.until(s.now + time.Millisecond)
				if to := leader.m.placement.target; to != 0 && !missed {
					missed = true
					cut := [2]uint64{leader.id, to}
					s.cut[cut] = true
					s.after(opt.delay, func() { delete(s.cut, cut) })
				}
			}
			s.until(s.now + 5*simElection)
			if next := s.leader(); open > 0 || next == leader {
				s.fail("%d proposals are pending, and member %d leads after %d", open, next.id, leader.id)
			}
		})
		if found != "" {
			t.Errorf("seed %d: %s", seed, found)
		}
	}
}
