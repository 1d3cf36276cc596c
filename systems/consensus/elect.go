package consensus

import (
	"math/rand/v2"

	"go.etcd.io/raft/v3"
)

// Raft alone lets a member without a leader stand between one and two election timeouts later, and again as long after
// a failed round. Two mechanisms shorten that. Neither weakens a guarantee: both ask for pre-votes earlier. A pre-vote
// changes no term, and members that hear from a leader do not grant it.
//
//   - A leader whose process has ended is suspected as soon as its machine refuses connections. A member that suspects
//     the leader forgets it, and so grants its pre-vote to others.
//   - A round of pre-votes without an answer is repeated after a few round trips.
const (
	// A tick is at least the slowest voter's round trip: suspectTicks later all others
	// have seen the same, and standTicks are a round of pre-votes and one of votes.
	suspectTicks = 2
	standTicks   = 2
	// preVoteTicks is how long a member waits at least before it asks for pre-votes again.
	preVoteTicks = 3
)

type candidacy struct {
	rng  *rand.Rand
	due  int // tick of it; 0: none is due
	term uint64
}

func (e *candidacy) init(epoch uint64) { e.rng = rand.New(rand.NewPCG(epoch, 1)) }

// suspectLeader handles the end of a member's process. Members stand in the order of their rank, so that votes do not split.
func (m *machine) suspectLeader(id uint64) {
	if id == raft.None || m.leaderID != id || m.role != raft.StateFollower {
		return
	}
	if err := m.raft.ForgetLeader(); err != nil {
		m.logger.Debug("the leader is not forgotten", "err", err)
		return
	}
	m.logger.Info("suspects the leader", "leader", id, "term", m.term)
	m.candidacy.due, m.candidacy.term = m.ticks+suspectTicks+standTicks*m.candidateRank(id), m.term
}

// candidateRank returns the number of voters that should lead rather than this one, without the lost one: members of the
// preferred site come first, witnesses last.
func (m *machine) candidateRank(lost uint64) int {
	class := func(o Member) int {
		switch {
		case o.Role == Witness:
			return 2
		case o.Site == m.cfg.preferSite:
			return 0
		}
		return 1
	}
	self, _ := m.membership.conf.member(m.cfg.id)
	before := 0
	for _, o := range m.membership.conf.Members {
		if o.ID == m.cfg.id || o.ID == lost || !m.membership.conf.votes(o.ID) {
			continue
		}
		if c, own := class(o), class(self); c < own || c == own && o.ID < self.ID {
			before++
		}
	}
	return before
}

// campaignEarly makes a member without a leader stand earlier than raft does. A candidate waits for votes to reach disks.
func (m *machine) campaignEarly() {
	e := &m.candidacy
	if m.leaderID != raft.None || m.role == raft.StateLeader || m.role == raft.StateCandidate || !m.membership.conf.votes(m.cfg.id) {
		e.due = 0
		return
	}
	if e.due == 0 || e.term != m.term {
		// Another member may be about to win the votes of this term.
		e.term = m.term
		e.due = m.ticks + electionTicks/2 + e.rng.IntN(electionTicks)
		if m.role == raft.StatePreCandidate {
			e.due = m.ticks + preVoteTicks + e.rng.IntN(preVoteTicks)
		}
		return
	}
	if m.ticks < e.due {
		return
	}
	e.due = m.ticks + preVoteTicks + e.rng.IntN(electionTicks/2)
	if err := m.raft.Campaign(); err != nil {
		m.logger.Debug("no candidacy", "err", err)
	}
}
