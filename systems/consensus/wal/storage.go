package wal

import (
	"fmt"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

const entryOverhead = 128

// truncate drops entries after index. The caller holds mu.
func (l *Log) truncate(index uint64) {
	for _, s := range l.segs {
		s.cut(index)
	}
	if index < l.floor.index {
		return
	}
	for n := len(l.cache); n > 0 && l.cache[n-1].GetIndex() > index; n = len(l.cache) {
		l.cached -= entryOverhead + int64(len(l.cache[n-1].GetData()))
		l.cache = l.cache[: n-1 : n-1]
	}
	l.last = index
}

// cacheEntries adds entries to the tail in memory. The caller holds mu.
func (l *Log) cacheEntries(entries []*raftpb.Entry) {
	for _, e := range entries {
		l.cached += entryOverhead + int64(len(e.GetData()))
		l.last = e.GetIndex()
	}
	l.cache = append(l.cache, entries...)
	for l.cached > l.opt.Cache && len(l.cache) > 1 {
		l.cached -= entryOverhead + int64(len(l.cache[0].GetData()))
		l.cache[0] = nil
		l.cache = l.cache[1:]
	}
}

// Entries returns entries from lo up to before hi: at least one, then as many as fit into maxSize bytes.
func (l *Log) Entries(lo, hi, maxSize uint64) ([]*raftpb.Entry, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if lo <= l.floor.index {
		return nil, raft.ErrCompacted
	}
	if lo > l.last || hi > l.last+1 {
		return nil, raft.ErrUnavailable
	}
	var out []*raftpb.Entry
	size := uint64(0)
	for i := lo; i < hi; i++ {
		e, err := l.entry(i)
		if err != nil {
			return nil, err
		}
		size += uint64(len(e.GetData())) + 24
		if len(out) > 0 && size > maxSize {
			break
		}
		out = append(out, e)
	}
	return out, nil
}

func (l *Log) entry(index uint64) (*raftpb.Entry, error) {
	if n := uint64(len(l.cache)); n > 0 && index >= l.cache[0].GetIndex() {
		return l.cache[index-l.cache[0].GetIndex()], nil
	}
	s := l.segmentOf(index)
	if s == nil {
		return nil, fmt.Errorf("%w: no segment has entry %d", ErrCorrupt, index)
	}
	return s.read(index)
}

func (l *Log) segmentOf(index uint64) *segment {
	for i := len(l.segs) - 1; i >= 0; i-- {
		if l.segs[i].holds(index) {
			return l.segs[i]
		}
	}
	return nil
}

// Term returns the term of an entry, or of the one before the first.
func (l *Log) Term(index uint64) (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	switch {
	case index == l.floor.index:
		return l.floor.term, nil
	case index < l.floor.index:
		return 0, raft.ErrCompacted
	case index > l.last:
		return 0, raft.ErrUnavailable
	}
	if s := l.segmentOf(index); s != nil {
		return s.term(index), nil
	}
	return 0, fmt.Errorf("%w: no segment has entry %d", ErrCorrupt, index)
}

// LastIndex returns the index of the last entry, or of the one before the first.
func (l *Log) LastIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.last, nil
}

// FirstIndex returns the index of the first entry that the log has or will have.
func (l *Log) FirstIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.floor.index + 1, nil
}

// HardState returns the last hard state written, nil if there is none.
func (l *Log) HardState() *raftpb.HardState {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.hs == (hard{}) {
		return nil
	}
	return &raftpb.HardState{Term: new(l.hs.Term), Vote: new(l.hs.Vote), Commit: new(l.hs.Commit)}
}

// Confs returns the membership at the log's beginning and all after it.
func (l *Log) Confs() []Conf {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return append([]Conf(nil), l.confs...)
}

// Usage is the size of a log and its counts of syncs.
type Usage struct {
	// Bytes are written in all segments, without space reserved.
	Bytes int64
	// Syncs counts fsyncs, Synced the entries that they made durable.
	Syncs, Synced uint64
}

// Usage returns the log's size on disk and its counts of syncs.
func (l *Log) Usage() Usage {
	l.mu.RLock()
	defer l.mu.RUnlock()
	u := Usage{Syncs: l.syncs, Synced: l.synced}
	for _, s := range l.segs {
		u.Bytes += s.size
	}
	return u
}

// Torn returns the bytes of a torn write that Open cut off.
func (l *Log) Torn() int64 { return l.torn }

// Excess returns the index up to which the log must be compacted to keep at most most bytes, and nothing that was written
// before old. It returns 0 if nothing must be dropped.
func (l *Log) Excess(most int64, old time.Time) uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	total := int64(0)
	for _, s := range l.segs {
		total += s.size
	}
	index := uint64(0)
	for i, s := range l.segs[:len(l.segs)-1] {
		if total <= most && !s.newest.Before(old) {
			break
		}
		total -= s.size
		index = l.lastOf(i)
	}
	return index
}

// BytesAfter returns the bytes that remain if the log is compacted up to index.
func (l *Log) BytesAfter(index uint64) int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	total := l.segs[len(l.segs)-1].size
	for i, s := range l.segs[:len(l.segs)-1] {
		if l.lastOf(i) > index {
			total += s.size
		}
	}
	return total
}
