// Package wal is a raft log on disk: segments of checksummed records, the last of which may
// end in a torn write, with the tail of the log in memory. It is raft's Storage.
//
// A bad record is cut off together with what follows when it may be a write that never
// became durable, and refused with ErrCorrupt when a later record shows that it was
// durable. Damage to the very last durable write looks like a torn one and cannot be told
// from it.
package wal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// Options is what Open needs.
type Options struct {
	// Cluster and ID are whose log it is.
	Cluster string
	ID      uint64
	// Segment is the size at which the next segment begins, in bytes.
	Segment int64
	// Cache bounds the tail of the log kept in memory, in bytes.
	Cache int64
	// Now tells the time; nil: time.Now.
	Now func() time.Time
}

// Log is an open log. Append, Sync, Reset, SetConf and Compact are for one goroutine;
// everything else may run beside them.
type Log struct {
	fs  FS
	opt Options
	// buf is the writer's; failed is why it must not write any more.
	buf    []byte
	failed error
	// owes says that something was written that others may count on before it is durable.
	owes bool

	mu       sync.RWMutex
	segs     []*segment // never empty; the last is written to
	floor    position   // the entry before the first
	last     uint64
	hs       hard
	confs    []Conf // of one index at or below the floor, and all after
	cache    []*raftpb.Entry
	cached   int64 // bytes
	syncs    uint64
	synced   uint64 // entries
	unsynced uint64
}

type position struct{ index, term uint64 }

// Empty tells whether the log was made by this Open: neither entries nor membership.
func (l *Log) Empty() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.confs) == 0
}

// Append writes a hard state (unless nil or empty) and entries; entries from the first one's
// index on that the log has are replaced. They are durable after Sync, save for a new commit
// alone, which a member learns again. After an error nothing has changed: the same append may be
// tried again.
func (l *Log) Append(hs *raftpb.HardState, entries []*raftpb.Entry) error {
	if l.failed != nil {
		return l.failed
	}
	l.mu.RLock()
	floor, last, current := l.floor, l.last, l.segs[len(l.segs)-1]
	l.mu.RUnlock()
	for len(entries) > 0 && entries[0].GetIndex() <= floor.index {
		entries = entries[1:]
	}
	if raft.IsEmptyHardState(hs) && len(entries) == 0 {
		return nil
	}
	if current.size >= l.opt.Segment {
		if err := l.rotate(nil); err != nil {
			return err
		}
		current = l.segs[len(l.segs)-1]
	}
	b := l.buf[:0]
	keep := last
	if len(entries) > 0 {
		first := entries[0].GetIndex()
		if first > last+1 {
			return fmt.Errorf("appending entry %d to a log that ends at %d", first, last)
		}
		if first <= last {
			keep = first - 1
			term, err := l.Term(keep)
			if err != nil {
				return fmt.Errorf("replacing entries from %d: %w", first, err)
			}
			b = appendNumbers(b, kindTruncate, current.synced, keep, term)
		}
	}
	offsets := make([]uint32, len(entries))
	for i, e := range entries {
		offsets[i] = uint32(current.size + int64(len(b)))
		b = appendEntry(b, e, current.synced)
	}
	// After the entries, so that a torn write has no commit past the log's end.
	if !raft.IsEmptyHardState(hs) {
		b = appendNumbers(b, kindHard, current.synced, hs.GetTerm(), hs.GetVote(), hs.GetCommit())
	}
	if cap(b) <= 4<<20 {
		l.buf = b
	}
	if _, err := current.file.WriteAt(b, current.size); err != nil {
		return fmt.Errorf("writing to log segment %s: %w", current.name(), err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	current.size += int64(len(b))
	current.newest = l.opt.Now()
	l.owes = l.owes || len(entries) > 0
	if !raft.IsEmptyHardState(hs) {
		l.owes = l.owes || hs.GetTerm() != l.hs.Term || hs.GetVote() != l.hs.Vote
		l.hs = hard{hs.GetTerm(), hs.GetVote(), hs.GetCommit()}
	}
	if keep < l.last {
		l.truncate(keep)
	}
	for i, e := range entries {
		current.add(e.GetIndex(), e.GetTerm(), offsets[i])
	}
	l.remember(entries)
	l.unsynced += uint64(len(entries))
	return nil
}

// Sync makes durable what others count on: entries, terms, votes, memberships. A commit that was
// written alone is no reason to wait for the disk: a follower is told of each one by itself, just
// after its entries, and would sync twice for them. After an error the log takes no more writes.
func (l *Log) Sync() error {
	if l.failed != nil || !l.owes {
		return l.failed
	}
	return l.syncCurrent()
}

// syncCurrent syncs the segment that is written to, its size too.
func (l *Log) syncCurrent() error {
	if l.failed != nil {
		return l.failed
	}
	current := l.segs[len(l.segs)-1]
	if err := current.file.Sync(); err != nil {
		l.failed = fmt.Errorf("%w: segment %s: %w", ErrSync, current.name(), err)
		return l.failed
	}
	l.owes = false
	l.mu.Lock()
	defer l.mu.Unlock()
	current.synced = current.size
	l.syncs++
	l.synced += l.unsynced
	l.unsynced = 0
	return nil
}

// SetConf notes the membership from conf.Index on; it becomes durable with the next Sync.
func (l *Log) SetConf(conf Conf) error {
	if l.failed != nil {
		return l.failed
	}
	current := l.segs[len(l.segs)-1]
	data, err := json.Marshal(conf)
	if err != nil {
		return fmt.Errorf("noting the membership: %w", err)
	}
	b := appendBytes(nil, kindConf, current.synced, data)
	if _, err := current.file.WriteAt(b, current.size); err != nil {
		return fmt.Errorf("noting the membership in log segment %s: %w", current.name(), err)
	}
	l.owes = true
	l.mu.Lock()
	defer l.mu.Unlock()
	current.size += int64(len(b))
	l.addConf(conf)
	return nil
}

// Reset begins the log anew after index, as a snapshot asks for. It is durable on return.
func (l *Log) Reset(index, term uint64, conf Conf) error {
	if l.failed != nil {
		return l.failed
	}
	conf.Index = index
	if err := l.rotate(&base{position{index, term}, conf}); err != nil {
		return err
	}
	return l.removeBefore(len(l.segs) - 1)
}

// Compact removes segments from the beginning all of whose entries are at or below index.
func (l *Log) Compact(index uint64) error {
	n := 0
	for n < len(l.segs)-1 && l.lastOf(n) <= index {
		n++
	}
	return l.removeBefore(n)
}

// Rotate begins a segment if the current one has entries and was begun before since, so
// that Compact can remove it.
func (l *Log) Rotate(since time.Time) error {
	current := l.segs[len(l.segs)-1]
	if l.failed != nil || len(current.offsets) == 0 || !current.created.Before(since) {
		return l.failed
	}
	return l.rotate(nil)
}

// addConf keeps the list in order; a membership of the same index is replaced.
func (l *Log) addConf(conf Conf) {
	conf.Data = bytes.Clone(conf.Data)
	for len(l.confs) > 0 && l.confs[len(l.confs)-1].Index >= conf.Index {
		l.confs = l.confs[:len(l.confs)-1]
	}
	l.confs = append(l.confs, conf)
	l.pruneConfs()
}

func (l *Log) pruneConfs() {
	for len(l.confs) > 1 && l.confs[1].Index <= l.floor.index {
		l.confs = l.confs[1:]
	}
}

// Close gives the directory up; it does not sync.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = fmt.Errorf("log is closed")
	var failed error
	for _, s := range l.segs {
		if err := s.file.Close(); err != nil && failed == nil {
			failed = err
		}
	}
	if err := l.fs.Close(); err != nil && failed == nil {
		failed = err
	}
	return failed
}

func isSegment(name string) bool { return strings.HasSuffix(name, suffix) }
