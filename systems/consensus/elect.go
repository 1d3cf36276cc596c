package consensus

import (
	"math/rand/v2"

	"go.etcd.io/raft/v3"
)

// Raft alone lets a member without a leader stand between one and two election timeouts
// later, and as long again after a round that came to nothing. Two things shorten that.
// Neither weakens anything: both ask for pre-votes earlier, which change no term and which
// members that hear from a leader do not give.
//
//   - A leader whose process has ended is suspected as soon as its machine refuses
//     connections. Who suspects it forgets it, and so gives its pre-vote to others.
//   - A round of pre-votes without an answer is repeated after a few round trips.
const (
	// A tick is at least the slowest voter's round trip: suspectTicks later all others
	// have seen the same, and standTicks are a round of pre-votes and one of votes.
	suspectTicks = 2
	standTicks   = 2
	// againTicks is how long a member waits at least before it asks for pre-votes again.
	preVoteTicks = 3
)

// candidacy is a member without leader's next candidacy.
type candidacy struct {
	rng  *rand.Rand
	due  int // tick of it; 0: none is due
	term uint64
}

func (e *candidacy) init(epoch uint64) { e.rng = rand.New(rand.NewPCG(epoch, 1)) }

// suspectLeader takes the word that the process of a member has ended. Members stand one
// after the other, by rank, so that they do not take votes from each other.
func (m *machine) suspectLeader(id uint64) {
	if id == raft.None || m.lead != id || m.state != raft.StateFollower {
		return
	}
	if err := m.rn.ForgetLeader(); err != nil {
		m.logger.Debug("the leader is not forgotten", "err", err)
		return
	}
	m.logger.Info("suspects the leader", "leader", id, "term", m.term)
	m.elect.due, m.elect.term = m.ticks+suspectTicks+standTicks*m.candidateRank(id), m.term
}

// candidateRank is how many voters should rather lead than this one, a lost one left out: those of
// the preferred site come first, witnesses last.
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
	self, _ := m.conf.member(m.cfg.id)
	before := 0
	for _, o := range m.conf.Members {
		if o.ID == m.cfg.id || o.ID == lost || !m.conf.votes(o.ID) {
			continue
		}
		if c, own := class(o), class(self); c < own || c == own && o.ID < self.ID {
			before++
		}
	}
	return before
}

// campaignEarly has a member without leader stand again earlier than raft does. A candidate is
// left alone: votes are on disks before they are given, which takes as long as it takes.
func (m *machine) campaignEarly() {
	e := &m.elect
	if m.lead != raft.None || m.state == raft.StateLeader || m.state == raft.StateCandidate || !m.conf.votes(m.cfg.id) {
		e.due = 0
		return
	}
	if e.due == 0 || e.term != m.term {
		// Somebody else may be about to win the votes of this term.
		e.term = m.term
		e.due = m.ticks + electionTicks/2 + e.rng.IntN(electionTicks)
		if m.state == raft.StatePreCandidate {
			e.due = m.ticks + preVoteTicks + e.rng.IntN(preVoteTicks)
		}
		return
	}
	if m.ticks < e.due {
		return
	}
	e.due = m.ticks + preVoteTicks + e.rng.IntN(electionTicks/2)
	if err := m.rn.Campaign(); err != nil {
		m.logger.Debug("no candidacy", "err", err)
	}
}
