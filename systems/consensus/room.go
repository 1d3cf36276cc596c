package consensus

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// The log's bound is kept by the leader, which takes proposals for as long as its own log has
// room (closed), and by each other member for itself (admit): the leader's log says nothing of how
// long another's is.
//
//  1. A cloud's database is lost, so that all logs are as long as they may be. Its member stands
//     still for a second, begins again, or cannot hear who applies.
//  2. The leader drops what another cloud's database has applied, a segment at each tick, and takes
//     as much again. To the member it sends in that second what its log would hold twice.
//  3. The member takes it all as it comes. It drops nothing before its next tick, nor before it is
//     told what has been applied: its log is twice as long as it may be, and so may be the disk.
//
// So a member looks when entries come. What has no room it leaves, as if it had been lost on the
// way: the leader sends it again, in a round trip or at a heartbeat, and by then the member knows
// more. What it may drop it learns from each member's heartbeats, and what a log does not have any
// more from that one's alone: some database has applied it, else it would be there. Where the
// leader's log does not have any more what the member lacks, it is given a state.
//
// A member needs at most as much room as the leader, and a segment, since others' logs have other
// boundaries between segments. It leaves nothing for longer than an election timeout: by then it has
// heard all that it can, and to wait on would keep a majority from what the leader took rightly.

// entryOverhead is how many bytes an entry takes in the log beside its data, at most.
const entryOverhead = 64

// weight is how many bytes entries take in the log, at most.
func weight(entries []*raftpb.Entry) (sum int64) {
	for _, e := range entries {
		sum += int64(len(e.GetData())) + entryOverhead
	}
	return sum
}

// admitEntries takes entries off a leader's message that have no room; false: nothing of it is left.
func (m *machine) admitEntries(msg *raftpb.Message) bool {
	entries := msg.GetEntries()
	if msg.GetType() != raftpb.MsgApp || len(entries) == 0 {
		return true
	}
	if size := weight(entries); size <= m.room {
		m.room -= size
		return true
	}
	m.chooseCompaction()
	m.measureSpace()
	room := m.cfg.maxLog + segmentSize(m.cfg.maxLog) - m.log.Without(m.keep.compact) - m.unwrittenBytes()
	n := 0
	for n < len(entries) && (m.hasEntry(entries[n]) || weight(entries[n:n+1]) <= room) {
		if !m.hasEntry(entries[n]) {
			room -= weight(entries[n : n+1])
		}
		n++
	}
	switch {
	case n == len(entries):
	case n == 0 && m.left == 0:
		m.left = m.ticks
		return false
	case n == 0 && m.ticks-m.left < electionTicks:
		return false
	case n > 0:
		msg.Entries = entries[:n]
	}
	m.left = 0
	m.room -= weight(msg.Entries)
	return true
}

// hasEntry tells whether the log has, or had, an entry already.
func (m *machine) hasEntry(e *raftpb.Entry) bool {
	if e.GetIndex() <= m.published.index {
		return true
	}
	term, err := m.log.Term(e.GetIndex())
	return err == nil && term == e.GetTerm()
}

// writing is entries that the store was given and has not confirmed.
type writing struct {
	last  uint64
	bytes int64
}

// noteWriting notes that the store was given entries, written that those up to an index are on disk.
func (m *machine) noteWriting(entries []*raftpb.Entry) {
	if len(entries) == 0 {
		return
	}
	m.writing = append(m.writing, writing{entries[len(entries)-1].GetIndex(), weight(entries)})
}

func (m *machine) noteWritten(index uint64) {
	m.writing = slices.DeleteFunc(m.writing, func(w writing) bool { return w.last <= index })
}

// unwrittenBytes is how many bytes the store has yet to confirm.
func (m *machine) unwrittenBytes() (sum int64) {
	for _, w := range m.writing {
		sum += w.bytes
	}
	return sum
}

// measureSpace finds how much the log takes before the next tick. What the store has not confirmed
// may not be on disk yet, and counts. A segment is left over: others' logs have other
// boundaries between segments, and drop theirs a little later.
func (m *machine) measureSpace() {
	m.room = m.cfg.maxLog - segmentSize(m.cfg.maxLog) - m.log.Usage().Bytes - m.unwrittenBytes()
	m.full = m.room <= 0
}

// reserveSpace counts proposals that are put into the log.
func (m *machine) reserveSpace(size int64) {
	m.room -= size
	m.full = m.full || m.room <= 0
}

// segmentSize is a sixteenth of the log, within what is sensible for files.
func segmentSize(maxLog int64) int64 { return min(max(maxLog/16, 64<<10), 64<<20) }
