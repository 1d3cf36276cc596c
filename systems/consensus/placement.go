package consensus

import (
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

const (
	// placementTicks is the time between attempts to transfer the leadership, unless the leader cannot write its log.
	placementTicks = 5 * electionTicks
	// placementMost bounds the doubling of that time after failed attempts.
	placementMost = 32 * electionTicks
	// settleTicks is the time before a new leader moves to the preferred site. Waiting proposals come first.
	settleTicks = 2 * electionTicks
	// handoverTicks is the time after which an attempt is aborted, since proposals wait for it.
	handoverTicks = electionTicks / 2
	snapshotTicks = 10 * electionTicks
	// The leader follows a site with more than followShare of at least followCount proposals in followWindow.
	followWindow = 5 * time.Second
	followCount  = 50
	followShare  = 2.0 / 3
	// promoteLag is the most entries that a promoted learner may lack: those of a round trip or two.
	promoteLag = 1000
)

type placement struct {
	proposals    map[uint64]int // by origin, since windowStart
	windowStart  time.Time
	busiest      string // site of most proposals in the last window, "" for none
	ledSince     int    // tick
	lastTransfer int    // tick of the last attempt, 0 for none
	target       uint64 // member of the attempt under way, 0 for none
	pause        int    // ticks between attempts, 0 for placementTicks
	waitUntil    int    // tick until which a leader that cannot write lets proposals wait for another leader
}

func (p *placement) countProposals(origin uint64, n int) { p.proposals[origin] += n }

// reset starts the term of this member as leader. Attempts of earlier terms do not count.
func (p *placement) reset(tick int) { p.ledSince, p.lastTransfer, p.target, p.pause = tick, 0, 0, 0 }

// maintain is called with every tick. All but the compaction is the leader's task.
func (m *machine) maintain() {
	m.compactLog()
	if m.role != raft.StateLeader {
		return
	}
	if m.placement.target != 0 && m.ticks-m.placement.lastTransfer >= handoverTicks {
		m.abortTransfer()
	}
	m.updateBusiestSite()
	m.retrySnapshots()
	m.nameLog()
	m.promoteLearners()
	m.placeLeadership()
}

func (m *machine) updateBusiestSite() {
	if m.now.Sub(m.placement.windowStart) < followWindow {
		return
	}
	total, sites := 0, map[string]int{}
	for id, n := range m.placement.proposals {
		if o, ok := m.membership.conf.member(id); ok {
			sites[o.Site] += n
			total += n
		}
	}
	m.placement.busiest = ""
	for site, n := range sites {
		if total >= followCount && float64(n) > followShare*float64(total) {
			m.placement.busiest = site
		}
	}
	clear(m.placement.proposals)
	m.placement.windowStart = m.now
}

// retrySnapshots reports snapshots as failed that their receivers have not confirmed in time. Raft sends them again.
func (m *machine) retrySnapshots() {
	m.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) {
		if pr.State != tracker.StateSnapshot {
			delete(m.offers, id)
		} else if _, ok := m.offers[id]; !ok {
			m.offers[id] = m.ticks
		}
	})
	for _, id := range slices.Sorted(maps.Keys(m.offers)) {
		if m.ticks-m.offers[id] >= snapshotTicks {
			delete(m.offers, id)
			m.raft.ReportSnapshot(id, raft.SnapshotFailure)
		}
	}
}

func (m *machine) promoteLearners() {
	if len(m.membership.conf.State.Learners) == 0 || m.membership.changeIndex > m.published.index {
		return
	}
	for _, p := range m.proposals.pending {
		if p.conf != nil && p.conf.Op == opPromote {
			return
		}
	}
	m.raft.WithProgress(func(id uint64, kind raft.ProgressType, pr tracker.Progress) {
		o, ok := m.membership.conf.member(id)
		if ok && kind == raft.ProgressTypeLearner && o.Role != Learner && pr.RecentActive &&
			pr.State == tracker.StateReplicate && pr.Match+promoteLag > m.published.index {
			m.proposeChange(confChange{Op: opPromote, Member: o}, func(uint64, error) {})
		}
	})
}

func (m *machine) placeLeadership() {
	self, _ := m.membership.conf.member(m.cfg.id)
	site := m.cfg.preferSite
	if site == "" && m.cfg.followProposals {
		site = m.placement.busiest
	}
	switch {
	case m.space.err != nil:
		m.transferToAny()
	case m.ticks-m.placement.ledSince < settleTicks:
	case self.Role == Witness:
		m.transferToAny()
	case site != "" && self.Site != site:
		m.transferTo(func(o Member) bool { return o.Site == site && o.Role == Voter })
	}
}

func (m *machine) transferToAny() {
	if m.role == raft.StateLeader && !m.transferTo(func(o Member) bool { return o.Role == Voter }) {
		if self, _ := m.membership.conf.member(m.cfg.id); self.Role != Witness {
			m.transferTo(func(Member) bool { return true })
		}
	}
}

func (m *machine) transferTo(will func(Member) bool) bool {
	pause := max(m.placement.pause, placementTicks)
	if m.space.err != nil {
		pause = electionTicks
	}
	if m.placement.lastTransfer != 0 && m.ticks-m.placement.lastTransfer < pause {
		return true
	}
	var to, match uint64
	m.raft.WithProgress(func(id uint64, kind raft.ProgressType, pr tracker.Progress) {
		o, ok := m.membership.conf.member(id)
		if ok && id != m.cfg.id && kind == raft.ProgressTypePeer && will(o) && pr.RecentActive &&
			pr.State == tracker.StateReplicate && pr.Match+promoteLag > m.published.index && pr.Match > match {
			to, match = id, pr.Match
		}
	})
	if to == 0 {
		return false
	}
	m.placement.lastTransfer, m.placement.target = m.ticks, to
	m.placement.waitUntil = m.ticks + 2*electionTicks // covers the next attempt, see setStorageError
	m.logger.Info("passes the leadership on", "to", to)
	m.raft.TransferLeader(to)
	return true
}

// abortTransfer ends a transfer that the other member has not completed, by a transfer to this leader.
func (m *machine) abortTransfer() {
	m.logger.Info("could not pass the leadership on", "to", m.placement.target)
	m.placement.target = 0
	m.placement.pause = min(2*max(m.placement.pause, placementTicks), placementMost)
	m.raft.TransferLeader(m.cfg.id)
	m.proposals.again = true
}

func (m *machine) requestTransfer(id uint64) {
	switch m.leaderID {
	case raft.None:
	case m.cfg.id:
		m.raft.TransferLeader(id)
	default:
		m.out.messages = append(m.out.messages, message{to: m.leaderID, transfer: id})
	}
}
