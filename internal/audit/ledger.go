package audit

import (
	"sync"
	"sync/atomic"
	"time"

	"skerry/internal/ycsb"
)

// Outcome is what became of a write.
type Outcome uint8

// Outcomes.
const (
	Acknowledged Outcome = iota
	InDoubt              // it may have happened, and may still
	Refused              // it certainly did not happen
)

// all stands for every field of a record.
const all = 0xFF

// MaxFields is how many fields a record may have.
const MaxFields = all

// maxRefused bounds the refused writes that are remembered, so that an outage in which a driver
// is refused at full speed does not fill the memory: 1,000,000 take 32 MB. A refused write
// beyond that which is there after all passes for an older one.
const maxRefused = 1_000_000

// Ledger knows the writes of a drive. A Writer for each worker tells it of them.
type Ledger struct {
	first  int64 // number of the first record
	loaded int64 // how many records from there the load left
	fields map[string]int
	names  []string
	shards [64]shard

	counts  [3]atomic.Int64 // by Outcome
	refused atomic.Int64    // remembered
}

// NewLedger begins a ledger of a table that was loaded with a workload's records.
func NewLedger(w ycsb.Workload) *Ledger {
	l := &Ledger{first: w.InsertStart, loaded: w.InsertCount, names: w.FieldNames(), fields: map[string]int{}}
	for i, n := range l.names {
		l.fields[n] = i
	}
	return l
}

// Counts are the writes by outcome so far.
func (l *Ledger) Counts() (acknowledged, inDoubt, refused int64) {
	return l.counts[Acknowledged].Load(), l.counts[InDoubt].Load(), l.counts[Refused].Load()
}

// shard keeps the writes of every 64th record. Its lock is held for as long as a short
// list is walked.
type shard struct {
	mu sync.Mutex
	// heads are the first nodes of records' lists, plus 1; 0 is none.
	heads []uint32
	// chunks hold the nodes, so that growing copies none.
	chunks [][]node
	used   uint32
	free   uint32 // list of nodes, plus 1
}

// node is a write that may be seen, or must not be.
type node struct {
	version    Version
	start, end int64 // ns of the driver's clock
	next       uint32
	field      uint8
	outcome    Outcome
	gone       bool // it deleted the record
}

const chunk = 1 << 12

func (s *shard) at(i uint32) *node { return &s.chunks[(i-1)/chunk][(i-1)%chunk] }

func (s *shard) take() uint32 {
	if i := s.free; i != 0 {
		s.free = s.at(i).next
		return i
	}
	if s.used%chunk == 0 {
		s.chunks = append(s.chunks, make([]node, chunk))
	}
	s.used++
	return s.used
}

// add puts a write into a record's list and takes those out that it made history.
func (l *Ledger) add(number int64, n node) {
	l.counts[n.outcome].Add(1)
	if n.outcome == Refused && l.refused.Add(1) > maxRefused {
		return
	}
	k := uint64(number - l.first)
	s := &l.shards[k%64]
	slot := int(k / 64)
	s.mu.Lock()
	defer s.mu.Unlock()
	for slot >= len(s.heads) {
		s.heads = append(s.heads, 0)
	}
	if n.outcome == Acknowledged {
		for link := &s.heads[slot]; *link != 0; {
			old := s.at(*link)
			if old.outcome != Acknowledged || old.end >= n.start || n.field != all && old.field != n.field {
				link = &old.next
				continue
			}
			freed := *link
			*link = old.next
			old.next, s.free = s.free, freed
		}
	}
	i := s.take()
	n.next = s.heads[slot]
	*s.at(i) = n
	s.heads[slot] = i
}

// Writer is one worker's part in a ledger: it names its writes and tells what became of
// them. It is used from one goroutine.
type Writer struct {
	ledger   *Ledger
	worker   Version
	sequence Version
	now      Write // under way
}

// Writer returns that of a worker, from 0.
func (l *Ledger) Writer(worker int) *Writer {
	return &Writer{ledger: l, worker: Version(worker&maxWorker) << sequenceBits}
}

// Stamp begins a write: it puts a new version into every value.
func (w *Writer) Stamp(number int64, values []ycsb.Field) {
	w.sequence++
	w.now = Write{Number: number, Version: w.worker | w.sequence&maxSequence, Field: w.ledger.stamp(number, values, w.worker|w.sequence&maxSequence)}
}

// stamp marks values with a version and returns which field they are, or all.
func (l *Ledger) stamp(number int64, values []ycsb.Field, v Version) int {
	if len(values) == len(l.names) {
		for i := range values {
			stamp(values[i].Value, number, i, v)
		}
		return all
	}
	field := all
	for i := range values {
		field = l.fields[values[i].Name]
		stamp(values[i].Value, number, field, v)
	}
	return field
}

// StampLoaded marks the values of a record that the load inserts.
func (l *Ledger) StampLoaded(number int64, values []ycsb.Field) { l.stamp(number, values, 0) }

// Delete begins a write that deletes a record.
func (w *Writer) Delete(number int64) {
	w.sequence++
	w.now = Write{Number: number, Version: w.worker | w.sequence&maxSequence, Field: all, Gone: true}
}

// Ended tells what became of the write that Stamp or Delete began; times are of one clock.
func (w *Writer) Ended(start, end time.Duration, o Outcome) {
	w.ledger.add(w.now.Number, node{version: w.now.Version, start: int64(start), end: int64(end), field: uint8(w.now.Field), outcome: o, gone: w.now.Gone})
}

// Abandoned enters the write under way as one in doubt, for a worker that does not come back.
func (w *Writer) Abandoned(start time.Duration) { w.Ended(start, start, InDoubt) }

// Now is the write that is under way, or ended last.
func (w *Writer) Now() Write { return w.now }
