package wal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Open replays the log in a directory, or creates one. It takes ownership of fs, also if it fails.
func Open(fs FS, opt Options) (*Log, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	l := &Log{fs: fs, opt: opt}
	if err := l.open(); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Log) open() error {
	seqs, err := l.listSegments()
	if err != nil {
		return fmt.Errorf("listing the log: %w", err)
	}
	for i, seq := range seqs {
		if err := l.replay(seq, i == len(seqs)-1); err != nil {
			return fmt.Errorf("replaying log segment %s: %w", segmentName(seq), err)
		}
	}
	if len(l.segs) == 0 {
		return l.rotate(nil)
	}
	// After a crash between a commit and its write, the log's beginning proves the commit.
	l.hs.Commit = max(l.hs.Commit, l.floor.index)
	return l.trimTail()
}

// listSegments returns the sequence numbers of the newest segments without a gap. Segments before a gap are usually
// removed ones that reappeared because a crash undid some of the removals. They are noted in l.stale: only the caller
// can know that none was lost.
func (l *Log) listSegments() ([]uint64, error) {
	names, err := l.fs.List()
	if err != nil {
		return nil, err
	}
	var seqs []uint64
	for _, name := range names {
		if !isSegment(name) {
			continue
		}
		seq, err := strconv.ParseUint(strings.TrimSuffix(name, suffix), 16, 64)
		if err != nil || segmentName(seq) != name {
			return nil, fmt.Errorf("%s is not a log segment's name", name)
		}
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	for i := len(seqs) - 1; i > 0; i-- {
		if seqs[i-1]+1 != seqs[i] {
			l.stale = seqs[:i]
			return seqs[i:], nil
		}
	}
	return seqs, nil
}

// replay reads one segment. A torn tail may only be in the last.
func (l *Log) replay(seq uint64, last bool) error {
	f, err := l.fs.Open(segmentName(seq))
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err != nil {
		f.Close()
		return err
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); err != nil && !(err == io.EOF && int64(n) == size) {
		f.Close()
		return err
	}
	s := &segment{seq: seq, file: f, created: l.opt.Now(), newest: l.opt.Now()}
	for s.size < size {
		r, ok := decodeRecord(b[s.size:])
		if !ok {
			break
		}
		if err := l.applyRecord(s, r); err != nil {
			f.Close()
			return fmt.Errorf("at byte %d: %w", s.size, err)
		}
		s.size += r.size
	}
	if s.size < size || size == 0 {
		if !last || provesDamage(b, s.size) {
			f.Close()
			return fmt.Errorf("%w: bad record at byte %d of %d", ErrCorrupt, s.size, size)
		}
		l.torn = int64(len(bytes.TrimRight(b[s.size:], "\x00"))) // the rest is reserved space
		if s.size == 0 {
			f.Close()
			if len(l.segs) == 0 && len(l.stale) > 0 {
				// Segments are removed only when a later one is durable.
				return fmt.Errorf("%w: no header, and segments before it are missing", ErrCorrupt)
			}
			// The segment was being made and nothing in it was durable.
			return l.fs.Remove(segmentName(seq))
		}
	}
	s.synced = s.size
	return nil
}

func (l *Log) applyRecord(s *segment, r record) error {
	if (s.size == 0) != (r.kind == kindSegment) {
		return fmt.Errorf("%w: record of kind %d out of place", ErrCorrupt, r.kind)
	}
	switch r.kind {
	case kindSegment:
		return l.applyHeader(s, r)
	case kindEntry:
		e, err := r.entry()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if e.GetIndex() != l.last+1 {
			return fmt.Errorf("%w: entry %d follows entry %d", ErrCorrupt, e.GetIndex(), l.last)
		}
		s.add(e.GetIndex(), e.GetTerm(), uint32(s.size))
		l.cache = append(l.cache, e)
		l.cached += entryOverhead + int64(len(e.GetData()))
		l.cacheEntries(nil)
		l.last = e.GetIndex()
	case kindHard:
		n, err := r.numbers(3)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		l.hs = hard{n[0], n[1], n[2]}
	case kindConf:
		var c Conf
		if err := json.Unmarshal(r.payload, &c); err != nil {
			return fmt.Errorf("%w: membership: %w", ErrCorrupt, err)
		}
		l.addConf(c)
	case kindTruncate:
		n, err := r.numbers(2)
		if err != nil || n[0] > l.last {
			return fmt.Errorf("%w: truncation of a log that ends at %d", ErrCorrupt, l.last)
		}
		if n[0] < l.floor.index {
			// The entry that is kept was in a segment that is gone.
			l.truncate(l.floor.index)
			l.floor = position{n[0], n[1]}
			l.last = n[0]
			return nil
		}
		l.truncate(n[0])
	default:
		return fmt.Errorf("%w: record of unknown kind %d", ErrCorrupt, r.kind)
	}
	return nil
}

func (l *Log) applyHeader(s *segment, r record) error {
	if len(r.payload) < 8 {
		return fmt.Errorf("%w: short header", ErrCorrupt)
	}
	if v := binary.LittleEndian.Uint64(r.payload); v > version {
		return fmt.Errorf("%w: format %d, this version knows %d", ErrVersion, v, version)
	}
	var h segmentHeader
	if err := json.Unmarshal(r.payload[8:], &h); err != nil {
		return fmt.Errorf("%w: header: %w", ErrCorrupt, err)
	}
	if h.Cluster != l.opt.Cluster || h.ID != l.opt.ID {
		return fmt.Errorf("%w: member %d of cluster %q, not %d of %q", ErrOwner, h.ID, h.Cluster, l.opt.ID, l.opt.Cluster)
	}
	if h.Seq != s.seq {
		return fmt.Errorf("%w: header of segment %s", ErrCorrupt, segmentName(h.Seq))
	}
	first := len(l.segs) == 0
	if !first && !h.Base && h.PrevIndex != l.last {
		return fmt.Errorf("%w: segment follows entry %d, the one before ends at %d", ErrCorrupt, h.PrevIndex, l.last)
	}
	l.segs = append(l.segs, s)
	if first || h.Base {
		l.resetTo(h)
	}
	return nil
}

// trimTail cuts off all after the last valid record, so that it never looks like part of the log again, and makes the read
// data durable, which may only have been in the page cache.
func (l *Log) trimTail() error {
	current := l.segs[len(l.segs)-1]
	if err := current.file.Truncate(current.size); err != nil {
		return fmt.Errorf("cutting off the tail of log segment %s: %w", current.name(), err)
	}
	if err := current.file.Sync(); err != nil {
		return fmt.Errorf("%w: segment %s: %w", ErrSync, current.name(), err)
	}
	l.reserve(current)
	return nil
}
