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

	"go.etcd.io/raft/v3/raftpb"

	"skerry/systems/consensus/wal"
	"skerry/systems/metadata/protocol"
)

// Options configures a journal. Zero fields mean the defaults.
type Options struct {
	// SegmentBytes is the size at which a new segment starts. Default: 64 MiB.
	SegmentBytes int64
	// SnapshotBytes is the minimum log between two snapshots. A larger last snapshot raises it to that snapshot's size.
	// Default: 128 MiB.
	SnapshotBytes int64
	Log           *slog.Logger

	fs func(dir string) (wal.FS, error) // for tests
}

// Journal is a Log on a local disk.
type Journal struct {
	dir     string
	o       Options
	machine StateMachine
	log     *wal.Log

	mu      sync.Mutex
	waiting []*entry
	closed  bool
	wake    chan struct{} // holds a value while records wait

	done chan struct{} // closed when the writer goroutine has ended
	err  error         // from closing the files; valid after done

	// Owned by the writer goroutine:
	next      uint64     // index of the next record
	written   int64      // bytes of log since the last snapshot
	snapshots chan error // result of the running snapshot; nil if none

	index, groups, snapIndex, snapBytes atomic.Int64
	syncing, longest                    atomic.Int64 // ns of fsyncs: total and maximum
	broken                              atomic.Pointer[error]
}

type entry struct {
	record []byte
	result chan outcome
}

type outcome struct {
	result any
	err    error
}

// Open opens the journal of a directory, which it creates if missing, and restores the machine.
func Open(dir string, m StateMachine, o Options) (*Journal, protocol.LogRecovery, error) {
	o.SegmentBytes = cmp.Or(o.SegmentBytes, 64<<20)
	o.SnapshotBytes = cmp.Or(o.SnapshotBytes, 128<<20)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.fs == nil {
		o.fs = wal.Directory
	}
	j := &Journal{dir: dir, o: o, machine: m, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if err := j.openLog(); err != nil {
		return nil, protocol.LogRecovery{}, fmt.Errorf("opening the journal: %w", err)
	}
	r, err := j.recover()
	if err != nil {
		return nil, r, errors.Join(fmt.Errorf("opening the journal: %w", err), j.log.Close())
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

func (j *Journal) Status() protocol.JournalStatus {
	s := protocol.JournalStatus{Index: j.index.Load(), Groups: j.groups.Load(), LogBytes: j.log.Usage().Bytes,
		SnapshotIndex: j.snapIndex.Load(), SnapshotBytes: j.snapBytes.Load()}
	s.Syncing, s.LongestSync = float64(j.syncing.Load())/1e9, float64(j.longest.Load())/1e9
	if err := j.broken.Load(); err != nil {
		s.Broken = (*err).Error()
	}
	return s
}

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
	j.err = j.log.Close()
}

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
	term, kind := uint64(1), raftpb.EntryNormal
	group := make([]*raftpb.Entry, 0, len(batch))
	for size := 0; len(group) < len(batch) && size < groupLimit; {
		record := batch[len(group)].record
		group = append(group, &raftpb.Entry{Index: new(j.next + uint64(len(group))), Term: &term, Type: &kind, Data: record})
		size += len(record)
	}
	if err := j.writeGroup(group); err != nil {
		for _, e := range batch[:len(group)] {
			e.result <- outcome{err: err}
		}
		return len(group)
	}
	for i, e := range group {
		result := j.apply(e)
		j.index.Store(int64(e.GetIndex()))
		batch[i].result <- outcome{result: result}
	}
	return len(group)
}

// writeGroup makes a group durable. After ErrRefused, the log is unchanged.
func (j *Journal) writeGroup(group []*raftpb.Entry) error {
	if err := j.broken.Load(); err != nil {
		return *err
	}
	start, before := time.Now(), j.log.Usage().Bytes
	err := j.log.Append(nil, group)
	if err != nil && !errors.Is(err, wal.ErrSync) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err == nil {
		err = j.log.Sync()
	}
	took := int64(time.Since(start))
	j.syncing.Add(took)
	j.longest.Store(max(took, j.longest.Load()))
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrBroken, err)
		j.broken.Store(&err)
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	j.groups.Add(1)
	j.written += j.log.Usage().Bytes - before
	return nil
}

func (j *Journal) maintain() {
	if j.snapshots != nil || j.written < max(j.o.SnapshotBytes, j.snapBytes.Load()) {
		return
	}
	j.written = 0 // after an error: retry after as much log
	if err := j.beginSnapshot(); err != nil {
		j.o.Log.Warn("cannot snapshot the journal", "error", err)
	}
}

// beginSnapshot starts to write the current state, and begins a segment, so that older ones can be deleted afterwards.
func (j *Journal) beginSnapshot() error {
	// A segment of any age.
	if err := j.log.Rotate(time.Now().Add(time.Hour)); err != nil {
		return err
	}
	s, err := j.machine.Snapshot()
	if err != nil {
		return err
	}
	index := j.next - 1
	j.snapshots = make(chan error, 1)
	go func() { j.snapshots <- j.writeSnapshot(s, index) }()
	return nil
}

func (j *Journal) writeSnapshot(s Snapshot, index uint64) error {
	defer s.Close()
	start := time.Now()
	size, err := SaveSnapshot(j.dir, index, s.Write)
	if err != nil {
		return err
	}
	j.snapIndex.Store(int64(index))
	j.snapBytes.Store(size)
	j.o.Log.Debug("journal snapshot written", "index", index, "bytes", size, "took", time.Since(start))
	return nil
}

// finishSnapshot deletes the part of the log that a written snapshot covers. Only the writer goroutine changes the log.
func (j *Journal) finishSnapshot(err error) {
	j.snapshots = nil
	if err == nil {
		err = j.log.Compact(uint64(j.snapIndex.Load()))
	}
	if err != nil {
		j.o.Log.Warn("journal snapshot failed; the log keeps growing", "error", err)
	}
}

var (
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
