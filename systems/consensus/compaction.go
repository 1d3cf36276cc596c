package consensus

import (
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// Two members enforce the bound of a log. The leader rejects proposals if its own log has no room (rejectsProposals).
// Every other member discards entries if its own log has no room (admitEntries), because the length of the leader's
// log gives no information about the length of another one:
//
//  1. A cloud's database is lost, so that all logs grow to their bound. A member stalls for a second, restarts, or
//     does not hear which entries were applied.
//  2. The leader drops entries that another cloud's database has applied, one segment with every tick, and accepts as
//     many new ones. It sends the member twice its bound within that second.
//  3. If the member accepted all of it, its log would reach twice its bound and might fill the disk: the member drops
//     nothing before its next tick, nor before it hears what was applied.
//
// A member therefore checks its room when entries arrive, and discards those without room as if they were lost. The
// leader sends them again after a round trip or with a heartbeat. Meanwhile the member learns from the heartbeats of
// all members what may be dropped. An entry that any member's log has dropped was applied by some database. If the
// leader's log lacks what the member needs, the member receives a state.
//
// Invariant: a member needs at most the room of the leader and one segment, since segments of different logs have
// different boundaries. It discards entries for an election timeout at most. By then it has received all heartbeats,
// and waiting longer would block a majority from entries that the leader accepted rightly.

// entryOverhead is the most bytes that an entry takes in the log in addition to its data.
const entryOverhead = 64

type logSpace struct {
	err          error // why the log cannot be written, nil if it can
	full         bool  // there is no room, and nothing may be dropped
	free         int64 // bytes for entries until the next tick
	unconfirmed  []unconfirmedWrite
	refusedSince int // tick since which a leader's entries had no room, 0 if they had
}

type unconfirmedWrite struct {
	last  uint64
	bytes int64
}

type compaction struct {
	applied map[uint64]uint64 // by member, as each reported
	dropped uint64            // last entry that some member's log has dropped
	target  uint64            // sent to the store
}

func (m *machine) setApplied(id, applied uint64) { m.compaction.applied[id] = applied }

// setDropped records the last entry that a member's log has dropped. Some database has applied it.
func (m *machine) setDropped(dropped uint64) {
	m.compaction.dropped = max(m.compaction.dropped, dropped)
}

func (m *machine) compactLog() {
	if m.cfg.maxAge > 0 {
		m.out.store = append(m.out.store, request{rotate: m.now.Add(-m.cfg.maxAge / 4)})
	}
	m.chooseCompaction()
	m.measureSpace()
}

// chooseCompaction drops entries that all members have applied; beyond the limits of size and age, that any has applied.
func (m *machine) chooseCompaction() {
	if len(m.membership.conf.Members) == 0 {
		return
	}
	everywhere, anywhere := m.published.index, m.compaction.dropped
	for _, o := range m.membership.conf.Members {
		if o.Role == Witness {
			continue
		}
		a := m.compaction.applied[o.ID]
		everywhere, anywhere = min(everywhere, a), max(anywhere, a)
	}
	old := time.Time{}
	if m.cfg.maxAge > 0 {
		old = m.now.Add(-m.cfg.maxAge)
	}
	forced := min(m.log.Excess(m.cfg.maxLog-3*segmentSize(m.cfg.maxLog), old), anywhere, m.published.index)
	if target := max(everywhere, forced); target > m.compaction.target {
		m.compaction.target = target
		m.out.store = append(m.out.store, request{compact: target})
	}
}

func weight(entries []*raftpb.Entry) (sum int64) {
	for _, e := range entries {
		sum += int64(len(e.GetData())) + entryOverhead
	}
	return sum
}

// admitEntries removes entries without room from a leader's message. It returns false if the message must be discarded.
func (m *machine) admitEntries(msg *raftpb.Message) bool {
	entries := msg.GetEntries()
	if msg.GetType() != raftpb.MsgApp || len(entries) == 0 {
		return true
	}
	if size := weight(entries); size <= m.space.free {
		m.space.free -= size
		return true
	}
	m.chooseCompaction()
	m.measureSpace()
	room := m.cfg.maxLog + segmentSize(m.cfg.maxLog) - m.log.BytesAfter(m.compaction.target) - m.unwrittenBytes()
	n := 0
	for n < len(entries) && (m.hasEntry(entries[n]) || weight(entries[n:n+1]) <= room) {
		if !m.hasEntry(entries[n]) {
			room -= weight(entries[n : n+1])
		}
		n++
	}
	switch {
	case n == len(entries):
	case n == 0 && m.space.refusedSince == 0:
		m.space.refusedSince = m.ticks
		return false
	case n == 0 && m.ticks-m.space.refusedSince < electionTicks:
		return false
	case n > 0:
		msg.Entries = entries[:n]
	}
	m.space.refusedSince = 0
	m.space.free -= weight(msg.Entries)
	return true
}

func (m *machine) hasEntry(e *raftpb.Entry) bool {
	if e.GetIndex() <= m.published.index {
		return true
	}
	term, err := m.log.Term(e.GetIndex())
	return err == nil && term == e.GetTerm()
}

func (m *machine) noteWriting(entries []*raftpb.Entry) {
	if len(entries) == 0 {
		return
	}
	m.space.unconfirmed = append(m.space.unconfirmed, unconfirmedWrite{entries[len(entries)-1].GetIndex(), weight(entries)})
}

func (m *machine) noteWritten(index uint64) {
	m.space.unconfirmed = slices.DeleteFunc(m.space.unconfirmed, func(w unconfirmedWrite) bool { return w.last <= index })
}

func (m *machine) unwrittenBytes() (sum int64) {
	for _, w := range m.space.unconfirmed {
		sum += w.bytes
	}
	return sum
}

// measureSpace computes the room until the next tick. Unconfirmed writes count, since they may not be on disk yet. One
// segment is kept free, because other logs have other boundaries between segments and drop theirs a little later.
func (m *machine) measureSpace() {
	m.space.free = m.cfg.maxLog - segmentSize(m.cfg.maxLog) - m.log.Usage().Bytes - m.unwrittenBytes()
	m.space.full = m.space.free <= 0
}

func (m *machine) reserveSpace(size int64) {
	m.space.free -= size
	m.space.full = m.space.full || m.space.free <= 0
}

func segmentSize(maxLog int64) int64 { return min(max(maxLog/16, 64<<10), 64<<20) }
