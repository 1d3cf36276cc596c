// Package wal is a raft log on disk: segments of checksummed records, with the tail of the log in memory. It implements
// the reading half of raft's Storage.
//
// Open truncates a bad record and everything after it if it may be a write that never became durable. It returns ErrCorrupt
// if a later record proves that the bad one was durable. Damage to the very last durable write looks like a torn write,
// and cannot be distinguished from it.
package wal

import (
	"bytes"
	"encoding/json"
	"errors"
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
	Now   func() time.Time
}

// Log is an open log. Append, Sync, Reset, SetConf, Compact and Rotate must not run concurrently. Other methods may.
type Log struct {
	fs  FS
	opt Options
	// buf is the writer's; failed is why it must not write any more.
	buf    []byte
	failed error
	// stale are the segments that Open found before a gap. The next Compact or Reset removes them: until then the caller
	// can refuse the log, and lose nothing.
	stale []uint64
	// needsSync is true if something was written that others may rely on once it is durable.
	needsSync bool

	mu       sync.RWMutex
	segs     []*segment // never empty; the last is written to
	torn     int64      // bytes that Open cut off
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

// Empty reports whether this Open created the log, so that it has neither entries nor a membership.
func (l *Log) Empty() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.confs) == 0
}

// Append writes a hard state (unless nil or empty) and entries, which replace entries at and after the index of the first.
// They are durable after Sync, except for a commit index alone, which a member learns again. After an error nothing has
// changed, and the same call may be repeated.
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
		return l.undoWrite(fmt.Errorf("writing to log segment %s: %w", current.name(), err))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	current.size += int64(len(b))
	current.newest = l.opt.Now()
	l.needsSync = l.needsSync || len(entries) > 0
	if !raft.IsEmptyHardState(hs) {
		l.needsSync = l.needsSync || hs.GetTerm() != l.hs.Term || hs.GetVote() != l.hs.Vote
		l.hs = hard{hs.GetTerm(), hs.GetVote(), hs.GetCommit()}
	}
	if keep < l.last {
		l.truncate(keep)
	}
	for i, e := range entries {
		current.add(e.GetIndex(), e.GetTerm(), offsets[i])
	}
	l.cacheEntries(entries)
	l.unsynced += uint64(len(entries))
	return nil
}

// undoWrite removes what a failed write left, durably, and returns err. Without it, a reopened log could have the first
// entries of an append that was refused, also behind entries that were appended later. If undoWrite fails, the log accepts no
// more writes.
func (l *Log) undoWrite(err error) error {
	current := l.segs[len(l.segs)-1]
	if undo := current.file.Truncate(current.size); undo != nil {
		l.failed = fmt.Errorf("%w: segment %s: %w; undoing the write: %w", ErrSync, current.name(), err, undo)
		return l.failed
	}
	if undo := l.syncCurrent(); undo != nil {
		return undo
	}
	l.reserve(current)
	return err
}

// reserve allocates a segment's space, so that a sync changes no metadata. A disk without that space is used as it is.
func (l *Log) reserve(s *segment) { _ = s.file.Allocate(max(s.size, l.opt.Segment+l.opt.Segment/8)) }

// Sync makes entries, terms, votes and memberships durable. It does not sync a commit index that was written alone: a
// follower receives each one just after its entries, and would sync twice. After an error the log accepts no more writes.
func (l *Log) Sync() error {
	if l.failed != nil || !l.needsSync {
		return l.failed
	}
	return l.syncCurrent()
}

func (l *Log) syncCurrent() error {
	if l.failed != nil {
		return l.failed
	}
	current := l.segs[len(l.segs)-1]
	if err := current.file.Sync(); err != nil {
		l.failed = fmt.Errorf("%w: segment %s: %w", ErrSync, current.name(), err)
		return l.failed
	}
	l.needsSync = false
	l.mu.Lock()
	defer l.mu.Unlock()
	current.synced = current.size
	l.syncs++
	l.synced += l.unsynced
	l.unsynced = 0
	return nil
}

// SetConf writes the membership from conf.Index on. The next Sync makes it durable.
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
	l.needsSync = true
	l.mu.Lock()
	defer l.mu.Unlock()
	current.size += int64(len(b))
	l.addConf(conf)
	return nil
}

// Reset replaces the log by an empty one after index, as a snapshot requires. It is durable on return.
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

// Compact removes segments from the beginning all of whose entries are at or below index, and those before a gap.
func (l *Log) Compact(index uint64) error {
	n := 0
	for n < len(l.segs)-1 && l.lastOf(n) <= index {
		n++
	}
	return l.removeBefore(n)
}

// Rotate begins a new segment if the current one has entries and was created before since, so that Compact can remove it.
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

// Close closes the files and releases the directory. It does not sync.
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

var (
	// ErrLocked reports that another process uses the directory.
	ErrLocked = errors.New("in use by another process")
	// ErrCorrupt reports damage of durable data. Cutting it off would lose acknowledged entries.
	ErrCorrupt = errors.New("log is damaged")
	// ErrVersion reports a log of a newer version.
	ErrVersion = errors.New("log was written by a newer version")
	// ErrOwner reports a log of another cluster or member.
	ErrOwner = errors.New("log belongs to another member")
	// ErrSync reports a failed fsync. The contents of the disk are unknown, so the log stays closed for writing.
	ErrSync = errors.New("disk failed to make the log durable")
)
