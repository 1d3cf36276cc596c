package consensus

import (
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

const (
	// placementTicks is how long a leader waits between attempts to pass its leadership on. One that cannot write its
	// log waits for an election timeout.
	placementTicks = 5 * electionTicks
	// placementMost bounds the doubling of that after attempts that failed.
	placementMost = 32 * electionTicks
	// settleTicks is how long a leader leads before it passes its leadership on to where
	// it should be: what waits for a leader comes first.
	settleTicks = 2 * electionTicks
	// handoverTicks is after how long an attempt is given up: proposals wait for it.
	handoverTicks = electionTicks / 2
	// snapshotTicks is after how long the leader offers a snapshot again.
	snapshotTicks = 10 * electionTicks
	// followWindow, followCount and followShare decide where most proposals come from.
	followWindow = 5 * time.Second
	followCount  = 50
	followShare  = 2.0 / 3
	// promoteLag is how many entries a learner may be behind to be promoted: few
	// enough to catch up within a round trip or two.
	promoteLag = 1000
)

// keeping is the upkeep of log, leadership and membership.
type keeping struct {
	applied  map[uint64]uint64 // by member, as each reported
	dropped  uint64            // what some member's log does not have any more
	asked    uint64            // what the operator wants compacted
	compact  uint64            // what the store was told last
	made     map[uint64]int    // proposals by origin since
	since    time.Time
	snapping map[uint64]int // members that were sent a snapshot: tick
	led      int            // tick since which this member leads
	tried    int            // tick of the last transfer
	waits    int            // tick until which a leader that cannot write has proposals wait for another leader
	to       uint64         // member that the leadership is being passed to; 0: none
	pause    int            // ticks between transfers; 0: placementTicks
	busiest  string         // the site that most proposals came from, in the last window
}

func (k *keeping) init() {
	k.applied = map[uint64]uint64{}
	k.made = map[uint64]int{}
	k.snapping = map[uint64]int{}
}

// setApplied notes what a member's consumer has applied.
func (m *machine) setApplied(id, applied uint64) { m.keep.applied[id] = applied }

// setDropped notes up to which entry a member's log has gone: some database has applied that much.
func (m *machine) setDropped(dropped uint64) { m.keep.dropped = max(m.keep.dropped, dropped) }

// count notes where proposals come from.
func (k *keeping) count(origin uint64, n int) { k.made[origin] += n }

// leads notes that this member has begun to lead. Attempts of an earlier time do not
// count any more.
func (k *keeping) leads(tick int) { k.led, k.tried, k.to, k.pause = tick, 0, 0, 0 }

func (m *machine) maintain() {
	m.compactLog()
	if m.state != raft.StateLeader {
		return
	}
	if m.keep.to != 0 && m.ticks-m.keep.tried >= handoverTicks {
		m.abortTransfer()
	}
	m.updateBusiestSite()
	m.retrySnapshots()
	m.nameLog()
	m.promoteLearners()
	m.placeLeadership()
}

// compactLog bounds the log before the next tick.
func (m *machine) compactLog() {
	if m.cfg.maxAge > 0 {
		m.out.store = append(m.out.store, request{rotate: m.now.Add(-m.cfg.maxAge / 4)})
	}
	m.chooseCompaction()
	m.measureSpace()
}

// chooseCompaction lets go of what all members have applied, and beyond the limits of what any has.
func (m *machine) chooseCompaction() {
	if len(m.conf.Members) == 0 {
		return
	}
	everywhere, anywhere := m.published.index, m.keep.dropped
	for _, o := range m.conf.Members {
		if o.Role == Witness {
			continue
		}
		a := m.keep.applied[o.ID]
		everywhere, anywhere = min(everywhere, a), max(anywhere, a)
	}
	old := time.Time{}
	if m.cfg.maxAge > 0 {
		old = m.now.Add(-m.cfg.maxAge)
	}
	forced := min(m.log.Excess(m.cfg.maxLog-3*segmentSize(m.cfg.maxLog), old), anywhere, m.published.index)
	asked := min(m.keep.asked, m.keep.applied[m.cfg.id], m.published.index)
	target := max(everywhere, forced, asked)
	if target > m.keep.compact {
		m.keep.compact = target
		m.out.store = append(m.out.store, request{compact: target})
	}
}

// updateBusiestSite finds the site that most proposals come from.
func (m *machine) updateBusiestSite() {
	if m.now.Sub(m.keep.since) < followWindow {
		return
	}
	total, sites := 0, map[string]int{}
	for id, n := range m.keep.made {
		if o, ok := m.conf.member(id); ok {
			sites[o.Site] += n
			total += n
		}
	}
	m.keep.busiest = ""
	for site, n := range sites {
		if total >= followCount && float64(n) > followShare*float64(total) {
			m.keep.busiest = site
		}
	}
	clear(m.keep.made)
	m.keep.since = m.now
}

// retrySnapshots gives up snapshots that their receivers have not confirmed; raft then sends
// them again.
func (m *machine) retrySnapshots() {
	m.rn.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) {
		if pr.State != tracker.StateSnapshot {
			delete(m.keep.snapping, id)
		} else if _, ok := m.keep.snapping[id]; !ok {
			m.keep.snapping[id] = m.ticks
		}
	})
	for _, id := range slices.Sorted(maps.Keys(m.keep.snapping)) {
		if m.ticks-m.keep.snapping[id] >= snapshotTicks {
			delete(m.keep.snapping, id)
			m.rn.ReportSnapshot(id, raft.SnapshotFailure)
		}
	}
}

// promoteLearners makes voters of learners that should be and have caught up.
func (m *machine) promoteLearners() {
	if len(m.conf.State.Learners) == 0 || m.confAfter > m.published.index {
		return
	}
	for _, p := range m.props.pending {
		if p.conf != nil && p.conf.Op == opPromote {
			return
		}
	}
	m.rn.WithProgress(func(id uint64, kind raft.ProgressType, pr tracker.Progress) {
		o, ok := m.conf.member(id)
		if ok && kind == raft.ProgressTypeLearner && o.Role != Learner && pr.RecentActive &&
			pr.State == tracker.StateReplicate && pr.Match+promoteLag > m.published.index {
			m.proposeChange(confChange{Op: opPromote, Member: o}, func(uint64, error) {})
		}
	})
}

// placeLeadership moves the leadership to where it should be.
func (m *machine) placeLeadership() {
	self, _ := m.conf.member(m.cfg.id)
	site := m.cfg.preferSite
	if site == "" && m.cfg.followProposals {
		site = m.keep.busiest
	}
	switch {
	case m.storage != nil:
		m.transferToAny()
	case m.ticks-m.keep.led < settleTicks:
	case self.Role == Witness:
		m.transferToAny()
	case site != "" && self.Site != site:
		m.transferTo(func(o Member) bool { return o.Site == site && o.Role == Voter })
	}
}

// transferToAny passes the leadership to any voter that is up to date, rather not a witness.
func (m *machine) transferToAny() {
	if m.state == raft.StateLeader && !m.transferTo(func(o Member) bool { return o.Role == Voter }) {
		if self, _ := m.conf.member(m.cfg.id); self.Role != Witness {
			m.transferTo(func(Member) bool { return true })
		}
	}
}

// transferTo passes the leadership to the most advanced of the voters that will do.
func (m *machine) transferTo(will func(Member) bool) bool {
	pause := max(m.keep.pause, placementTicks)
	if m.storage != nil {
		pause = electionTicks
	}
	if m.keep.tried != 0 && m.ticks-m.keep.tried < pause {
		return true
	}
	var to, match uint64
	m.rn.WithProgress(func(id uint64, kind raft.ProgressType, pr tracker.Progress) {
		o, ok := m.conf.member(id)
		if ok && id != m.cfg.id && kind == raft.ProgressTypePeer && will(o) && pr.RecentActive &&
			pr.State == tracker.StateReplicate && pr.Match+promoteLag > m.published.index && pr.Match > match {
			to, match = id, pr.Match
		}
	})
	if to == 0 {
		return false
	}
	m.keep.tried, m.keep.to = m.ticks, to
	m.keep.waits = m.ticks + 2*electionTicks // the next attempt is due in the middle, perhaps as the quorum is checked: see stored
	m.logger.Info("passes the leadership on", "to", to)
	m.rn.TransferLeader(to)
	return true
}

// abortTransfer goes on leading: the other one has not taken over. To pass the
// leadership to itself is how a leader takes an attempt back.
func (m *machine) abortTransfer() {
	m.logger.Info("could not pass the leadership on", "to", m.keep.to)
	m.keep.to = 0
	m.keep.pause = min(2*max(m.keep.pause, placementTicks), placementMost)
	m.rn.TransferLeader(m.cfg.id)
	m.props.again = true
}

// requestTransfer passes the leadership to a member, by way of the leader.
func (m *machine) requestTransfer(id uint64) {
	switch m.lead {
	case raft.None:
	case m.cfg.id:
		m.rn.TransferLeader(id)
	default:
		m.out.messages = append(m.out.messages, message{to: m.lead, transfer: id})
	}
}
