package wal

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sort"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

const suffix = ".wal"

// segment is a file with the offsets of its entries. Only entries from first on, one for each offset, are valid.
type segment struct {
	seq     uint64
	file    File
	size    int64 // where the next record goes
	synced  int64 // how much is durable
	created time.Time
	newest  time.Time // the last append

	first   uint64
	offsets []uint32
	terms   []termRun
}

type termRun struct{ from, term uint64 }

func segmentName(seq uint64) string { return fmt.Sprintf("%016x%s", seq, suffix) }
func (s *segment) name() string     { return segmentName(s.seq) }
func (s *segment) last() uint64     { return s.first + uint64(len(s.offsets)) - 1 }

func (s *segment) add(index, term uint64, offset uint32) {
	if len(s.offsets) == 0 {
		s.first = index
		s.terms = s.terms[:0]
	}
	if n := len(s.terms); n == 0 || s.terms[n-1].term != term {
		s.terms = append(s.terms, termRun{index, term})
	}
	s.offsets = append(s.offsets, offset)
}

func (s *segment) cut(index uint64) {
	if len(s.offsets) == 0 || index >= s.last() {
		return
	}
	if index < s.first {
		s.offsets, s.terms = nil, nil
		return
	}
	s.offsets = s.offsets[:index-s.first+1]
	for s.terms[len(s.terms)-1].from > index {
		s.terms = s.terms[:len(s.terms)-1]
	}
}

func (s *segment) holds(index uint64) bool {
	return len(s.offsets) > 0 && index >= s.first && index <= s.last()
}

func (s *segment) term(index uint64) uint64 {
	i := sort.Search(len(s.terms), func(i int) bool { return s.terms[i].from > index })
	return s.terms[i-1].term
}

// read returns one entry, verified.
func (s *segment) read(index uint64) (*raftpb.Entry, error) {
	offset := int64(s.offsets[index-s.first])
	end := s.size
	if i := index - s.first + 1; i < uint64(len(s.offsets)) {
		// What lies between two entries belongs to the first, or are small records.
		end = int64(s.offsets[i])
	} else {
		var head [headerSize]byte
		if _, err := s.file.ReadAt(head[:], offset); err != nil {
			return nil, fmt.Errorf("reading entry %d in log segment %s: %w", index, s.name(), err)
		}
		n := int64(binary.LittleEndian.Uint32(head[8:]))
		end = min(end, offset+headerSize+n)
	}
	b := make([]byte, end-offset)
	if _, err := s.file.ReadAt(b, offset); err != nil {
		return nil, fmt.Errorf("reading entry %d in log segment %s: %w", index, s.name(), err)
	}
	r, ok := decodeRecord(b)
	if !ok {
		return nil, fmt.Errorf("%w: entry %d in segment %s at byte %d", ErrCorrupt, index, s.name(), offset)
	}
	e, err := r.entry()
	if err != nil || e.GetIndex() != index {
		return nil, fmt.Errorf("%w: segment %s at byte %d is not entry %d", ErrCorrupt, s.name(), offset, index)
	}
	return e, nil
}

type base struct {
	at   position
	conf Conf
}

// rotate begins a segment. After an error other than of a sync, the current one stays in use.
func (l *Log) rotate(b *base) error {
	seq := uint64(1)
	head := segmentHeader{Cluster: l.opt.Cluster, ID: l.opt.ID, Hard: l.hs, Confs: l.confs}
	if n := len(l.segs); n > 0 {
		current := l.segs[n-1]
		seq = current.seq + 1
		if err := current.file.Truncate(current.size); err != nil {
			return fmt.Errorf("closing log segment %s: %w", current.name(), err)
		}
		// The end too, though no record may wait for it: a file system that orders nothing else could keep the next
		// segment and give this one back its zeros, which are damage in a segment that is not the last.
		if err := l.syncCurrent(); err != nil {
			return err
		}
		term, err := l.Term(l.last)
		if err != nil {
			return err
		}
		head.PrevIndex, head.PrevTerm = l.last, term
	}
	if b != nil {
		head.Base, head.PrevIndex, head.PrevTerm, head.Confs = true, b.at.index, b.at.term, []Conf{b.conf}
		head.Hard.Commit = max(head.Hard.Commit, b.at.index)
	}
	head.Seq = seq
	s, err := l.createSegment(head)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segs = append(l.segs, s)
	if b != nil {
		l.resetTo(head)
	}
	return nil
}

func (l *Log) resetTo(head segmentHeader) {
	for _, s := range l.segs[:len(l.segs)-1] {
		s.offsets, s.terms = nil, nil
	}
	l.floor = position{head.PrevIndex, head.PrevTerm}
	l.last = head.PrevIndex
	l.hs = head.Hard
	l.confs = head.Confs
	l.cache, l.cached = nil, 0
}

func (l *Log) createSegment(head segmentHeader) (*segment, error) {
	name := segmentName(head.Seq)
	fail := func(err error) (*segment, error) {
		return nil, fmt.Errorf("creating log segment %s: %w", name, err)
	}
	data, err := json.Marshal(head)
	if err != nil {
		return fail(err)
	}
	f, err := l.fs.Create(name)
	if err != nil {
		return fail(err)
	}
	undo := func(err error) (*segment, error) {
		f.Close()
		l.fs.Remove(name)
		return fail(err)
	}
	now := l.opt.Now()
	s := &segment{seq: head.Seq, file: f, created: now, newest: now}
	l.reserve(s)
	b := appendBytes(nil, kindSegment, 0, binary.LittleEndian.AppendUint64(nil, version), data)
	if _, err := f.WriteAt(b, 0); err != nil {
		return undo(err)
	}
	if err := f.Sync(); err != nil {
		return undo(err)
	}
	if err := l.fs.Sync(); err != nil {
		return undo(err)
	}
	s.size, s.synced = int64(len(b)), int64(len(b))
	return s, nil
}

// removeBefore removes the first n segments and those before a gap, oldest first, so that a crash in between leaves a log.
func (l *Log) removeBefore(n int) error {
	for ; len(l.stale) > 0; l.stale = l.stale[1:] {
		if err := l.fs.Remove(segmentName(l.stale[0])); err != nil {
			return fmt.Errorf("removing log segment %s: %w", segmentName(l.stale[0]), err)
		}
	}
	for ; n > 0; n-- {
		s := l.segs[0]
		l.mu.Lock()
		if len(s.offsets) > 0 {
			l.floor = position{s.last(), s.term(s.last())}
			l.pruneConfs()
		}
		l.segs = l.segs[1:]
		s.file.Close()
		l.mu.Unlock()
		if err := l.fs.Remove(s.name()); err != nil {
			return fmt.Errorf("removing log segment %s: %w", s.name(), err)
		}
	}
	return nil
}

// lastOf is the last index that is alive in segment i or before it.
func (l *Log) lastOf(i int) uint64 {
	for ; i >= 0; i-- {
		if len(l.segs[i].offsets) > 0 {
			return l.segs[i].last()
		}
	}
	return l.floor.index
}
