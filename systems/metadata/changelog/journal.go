package changelog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"skerry/internal/base/flock"
)

// Options configures a journal. Zero fields mean the defaults.
type Options struct {
	// SegmentBytes is the size at which a new segment starts. Default: 64 MiB.
	SegmentBytes int64
	// SnapshotBytes is the minimum log between two snapshots. A larger last snapshot raises it to that snapshot's size.
	// Default: 128 MiB.
	SnapshotBytes int64
	// Log receives the results of background snapshots.
	Log *slog.Logger

	wrap func(file) file // for tests
}

// Journal is a Log on a local disk.
type Journal struct {
	dir     string
	o       Options
	machine Machine
	wrap    func(file) file
	lock    *flock.Lock

	mu      sync.Mutex
	waiting []*entry
	closed  bool
	wake    chan struct{} // holds a value while records wait

	done chan struct{} // closed when the writer goroutine has ended
	err  error         // from closing the files; valid after done

	// Owned by the writer goroutine:
	segment   *segment
	next      uint64 // index of the next record
	written   int64  // bytes of log since the last snapshot
	buffer    []byte
	snapshots chan error // result of the running snapshot; nil if none

	index, groups, logBytes, snapIndex, snapBytes atomic.Int64
	syncing, longest                              atomic.Int64 // ns of fsyncs: total and maximum
	broken                                        atomic.Pointer[error]
}

// Status is the state of a journal.
type Status struct {
	Index         int64   `json:"index"`           // records since the journal was created
	Groups        int64   `json:"groups"`          // fsyncs since the journal was opened
	Syncing       float64 `json:"fsync_s"`         // seconds of writing and syncing since the journal was opened
	LongestSync   float64 `json:"longest_fsync_s"` // seconds of the slowest group
	LogBytes      int64   `json:"log_bytes"`       // bytes of all segments
	SnapshotIndex int64   `json:"snapshot_index"`  // records in the last snapshot
	SnapshotBytes int64   `json:"snapshot_bytes"`
	Broken        string  `json:"broken,omitempty"` // reason why the journal is read-only
}

// entry is a record that waits to become durable.
type entry struct {
	record []byte
	result chan outcome
}

type outcome struct {
	result any
	err    error
}

// Open opens the journal of a directory, creates the directory if missing, and restores the machine to the recorded
// state.
func Open(dir string, m Machine, o Options) (*Journal, Recovery, error) {
	o.SegmentBytes = cmp.Or(o.SegmentBytes, 64<<20)
	o.SnapshotBytes = cmp.Or(o.SnapshotBytes, 128<<20)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	j := &Journal{dir: dir, o: o, machine: m, wrap: o.wrap, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if j.wrap == nil {
		j.wrap = func(f file) file { return f }
	}
	var err error
	if j.lock, err = lockDir(dir); err != nil {
		return nil, Recovery{}, fmt.Errorf("opening the journal: %w", err)
	}
	r, err := j.recover()
	if err != nil {
		return nil, r, errors.Join(fmt.Errorf("opening the journal: %w", err), j.lock.Close())
	}
	go j.run()
	return j, r, nil
}

func (j *Journal) Append(ctx context.Context, record []byte) (any, error) {
	if len(record) > MaxRecord {
		return nil, fmt.Errorf("record of %d bytes: %w", len(record), ErrTooLarge)
	}
	e := &entry{record: record, result: make(chan outcome, 1)}
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil, ErrClosed
	}
	j.waiting = append(j.waiting, e)
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
	select {
	case o := <-e.result:
		return o.result, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnknown, context.Cause(ctx))
	}
}

// Close implements Log. It waits for a running snapshot.
func (j *Journal) Close() error {
	j.mu.Lock()
	closed := j.closed
	j.closed = true
	j.mu.Unlock()
	if !closed {
		select {
		case j.wake <- struct{}{}:
		default:
		}
	}
	<-j.done
	return j.err
}

func (j *Journal) Status() Status {
	s := Status{Index: j.index.Load(), Groups: j.groups.Load(), LogBytes: j.logBytes.Load(), SnapshotIndex: j.snapIndex.Load(),
		SnapshotBytes: j.snapBytes.Load()}
	s.Syncing, s.LongestSync = float64(j.syncing.Load())/1e9, float64(j.longest.Load())/1e9
	if err := j.broken.Load(); err != nil {
		s.Broken = (*err).Error()
	}
	return s
}

// run writes groups until the journal is closed and the queue is empty.
func (j *Journal) run() {
	defer close(j.done)
	for closed := false; !closed; {
		select {
		case <-j.wake:
			closed = j.commitAll()
		case err := <-j.snapshots:
			j.finishSnapshot(err)
		}
	}
	if j.snapshots != nil {
		j.finishSnapshot(<-j.snapshots)
	}
	j.err = errors.Join(j.segment.file.Close(), j.lock.Close())
}

// commitAll writes all waiting records, and reports whether the journal was closed.
func (j *Journal) commitAll() bool {
	for {
		// Callers that the last group answered run first. Their next records join this group, which halves the fsyncs of
		// clients that send one change after another.
		runtime.Gosched()
		j.mu.Lock()
		batch, closed := j.waiting, j.closed
		j.waiting = nil
		j.mu.Unlock()
		if len(batch) == 0 {
			return closed
		}
		for len(batch) > 0 {
			batch = batch[j.commit(batch):]
		}
		j.maintain()
	}
}

// commit makes the first records of the batch durable as one group, applies them, and returns their number.
func (j *Journal) commit(batch []*entry) int {
	j.buffer = beginGroup(j.buffer)
	n := 0
	for n < len(batch) && len(j.buffer) < groupLimit {
		j.buffer = addRecord(j.buffer, batch[n].record)
		n++
	}
	endGroup(j.buffer, j.next)
	if err := j.writeBuffer(); err != nil {
		for _, e := range batch[:n] {
			e.result <- outcome{err: err}
		}
		return n
	}
	for _, e := range batch[:n] {
		result := j.machine.Apply(j.next, e.record)
		j.next++
		j.index.Store(int64(j.next - 1))
		e.result <- outcome{result: result}
	}
	return n
}

func (j *Journal) writeBuffer() error {
	if err := j.broken.Load(); err != nil {
		return *err
	}
	start := time.Now()
	err := j.segment.append(j.buffer)
	took := int64(time.Since(start))
	j.syncing.Add(took)
	j.longest.Store(max(took, j.longest.Load()))
	if errors.Is(err, ErrBroken) {
		broken := err
		j.broken.Store(&broken)
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if err != nil {
		return err
	}
	j.groups.Add(1)
	j.logBytes.Add(int64(len(j.buffer)))
	j.written += int64(len(j.buffer))
	if cap(j.buffer) > 2*groupLimit {
		j.buffer = nil
	}
	return nil
}

func (j *Journal) maintain() {
	if j.segment.size >= j.o.SegmentBytes {
		if err := j.rotate(); err != nil {
			j.o.Log.Warn("cannot start a new journal segment", "error", err)
		}
	}
	if j.snapshots == nil && j.written >= max(j.o.SnapshotBytes, j.snapBytes.Load()) {
		j.beginSnapshot()
	}
}

// rotate completes the current segment and starts a new one.
func (j *Journal) rotate() error {
	if j.segment.size == 0 {
		return nil
	}
	s, err := j.newSegment(j.next)
	if err != nil {
		return err
	}
	old := j.segment
	j.segment = s
	return old.file.Close()
}

var (
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("journal is closed")
	// ErrRefused means that a record was not written, for example because the disk is full. Later records may succeed.
	ErrRefused = errors.New("journal refused the write")
	// ErrBroken means that the journal refuses records until it is reopened.
	ErrBroken = errors.New("journal is read-only until it is reopened")
	// ErrUnknown means that a record may be durable or may become durable.
	ErrUnknown = errors.New("record may or may not be in the journal")
	// ErrTooLarge means that a record exceeds MaxRecord.
	ErrTooLarge = errors.New("record too large for the journal")

	// ErrCorrupt means that durable data is damaged.
	ErrCorrupt = errors.New("journal is corrupt")
	// ErrNewer means that a newer version of this program wrote the journal.
	ErrNewer = errors.New("journal was written by a newer version")
	// ErrInUse means that another process has the journal open.
	ErrInUse = errors.New("journal is in use by another server")
)
