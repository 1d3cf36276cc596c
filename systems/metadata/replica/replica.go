// Package replica is a changelog.Log replicated by Raft (package consensus). One server of the metadata service is a
// group of replicas, each with the whole state.
//
//	Append ─► consensus: durable on a majority ─► applied here, in order ─► answer
//	Current ─► consensus: read index ─► applied here up to it
//
//	DIR/raft/             the log
//	DIR/snapshot-INDEX    the state after entry INDEX, which the log no longer needs
//
// Any replica accepts records; followers forward them to the leader. A record is in the log at most once, across any
// number of leaders. The state is in memory. A restart needs the last snapshot and the log after it.
package replica

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"skerry/systems/consensus"
	"skerry/systems/metadata/changelog"
	"skerry/systems/metadata/protocol"
)

// Options configures a replica. Zero fields mean the defaults.
type Options struct {
	// SnapshotBytes is the minimum size of records applied between two snapshots. A larger last snapshot raises it to
	// that snapshot's size. Default: 128 MiB.
	SnapshotBytes int64
	// Patience is the maximum wait of a record or read for a majority. Default: 10 s.
	Patience time.Duration
	// Log receives the results of background work.
	Log *slog.Logger
}

// Log implements changelog.SharedLog.
type Log struct {
	dir     string
	o       Options
	machine changelog.StateMachine
	node    *consensus.Node
	run     uint64 // random id of this process: its records are answered here
	seq     atomic.Uint64

	// snapping is held while a snapshot is written or loaded: a machine has one at a time.
	snapping sync.Mutex
	// state is held while records are applied or the state is replaced. Lock order: snapping, state.
	state   sync.Mutex
	written int64 // bytes applied since the last snapshot; guarded by state

	mu      sync.Mutex
	applied uint64
	grown   chan struct{} // closed when applied grows
	waiting map[uint64]chan any

	durable, snapBytes atomic.Int64
	snapshots          sync.WaitGroup
	all                sync.WaitGroup
	cancel             context.CancelFunc
}

var _ changelog.SharedLog = (*Log)(nil)

// headerSize is the size of the header of a record in an entry: the run that appended it, and its number there.
const headerSize = 16

// Open restores the machine from the last snapshot and joins the group, which applies the log. It sets Dir and Snapshotter.
func Open(ctx context.Context, dir string, m changelog.StateMachine, group consensus.Config, o Options) (_ *Log,
	r protocol.LogRecovery, err error) {
	o.SnapshotBytes = cmp.Or(o.SnapshotBytes, 128<<20)
	o.Patience = cmp.Or(o.Patience, 10*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	l := &Log{dir: dir, o: o, machine: m, grown: make(chan struct{}), waiting: make(map[uint64]chan any)}
	var run [8]byte
	if _, err := rand.Read(run[:]); err != nil {
		return nil, r, fmt.Errorf("opening a replica: %w", err)
	}
	l.run = binary.LittleEndian.Uint64(run[:])
	start := time.Now()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, r, fmt.Errorf("opening a replica: %w", err)
	}
	index, size, err := changelog.LoadSnapshot(dir, m.Restore)
	if err != nil {
		return nil, r, fmt.Errorf("opening a replica: %w", err)
	}
	l.applied, r.Snapshot, r.Took = index, index, time.Since(start)
	l.durable.Store(int64(index))
	l.snapBytes.Store(size)
	group.Dir, group.Snapshotter, group.Log = filepath.Join(dir, "raft"), snapshotter{l}, o.Log
	if l.node, err = consensus.Open(ctx, group); err != nil {
		return nil, r, fmt.Errorf("opening a replica: %w", err)
	}
	l.node.Applied(uint64(l.durable.Load()))
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancel = cancel
	l.all.Go(func() { l.apply(running) })
	return l, r, nil
}

// Append implements changelog.Log. The record is applied on this replica when Append returns, and on the others soon.
func (l *Log) Append(ctx context.Context, record []byte) (any, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.o.Patience, errNoMajority)
	defer cancel()
	seq := l.seq.Add(1)
	data := make([]byte, headerSize, headerSize+len(record))
	binary.LittleEndian.PutUint64(data, l.run)
	binary.LittleEndian.PutUint64(data[8:], seq)
	result := make(chan any, 1)
	l.mu.Lock()
	l.waiting[seq] = result
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.waiting, seq)
		l.mu.Unlock()
	}()
	index, err := l.node.Propose(ctx, append(data, record...))
	if err != nil {
		return nil, proposalError(err)
	}
	if err := l.awaitApplied(ctx, index); err != nil {
		return nil, fmt.Errorf("%w: %w", changelog.ErrUnknown, err)
	}
	select {
	case r := <-result: // answered before applied grew
		return r, nil
	default:
		return nil, fmt.Errorf("%w: the change is in the state of another replica, its result is unknown", changelog.ErrUnknown)
	}
}

func (l *Log) Current(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, l.o.Patience, errNoMajority)
	defer cancel()
	index, err := l.node.ReadIndex(ctx)
	if err != nil {
		return fmt.Errorf("reading the group's log position: %w", err)
	}
	return l.awaitApplied(ctx, index)
}

func (l *Log) Close() error {
	l.cancel()
	err := l.node.Close()
	l.all.Wait()
	l.snapshots.Wait()
	return err
}

// Done is closed when the replica has stopped, by itself or by Close. Err returns the reason.
func (l *Log) Done() <-chan struct{} { return l.node.Done() }

func (l *Log) Err() error { return l.node.Err() }

// Node returns the replica's member of the group.
func (l *Log) Node() *consensus.Node { return l.node }

func (l *Log) Status() protocol.JournalStatus {
	s := l.node.Status()
	l.mu.Lock()
	applied := l.applied
	l.mu.Unlock()
	return protocol.JournalStatus{
		Index: int64(applied), Groups: int64(s.Syncs), LogBytes: s.LogBytes,
		SnapshotIndex: l.durable.Load(), SnapshotBytes: l.snapBytes.Load(), Broken: s.StorageError,
	}
}

var errNoMajority = errors.New("no answer from a majority of the replicas in time")

func proposalError(err error) error {
	switch {
	case errors.Is(err, consensus.ErrTooLarge):
		return fmt.Errorf("%w: %w", changelog.ErrTooLarge, err)
	case errors.Is(err, consensus.ErrNotDone):
		return fmt.Errorf("%w: %w", changelog.ErrRefused, err)
	}
	return fmt.Errorf("%w: %w", changelog.ErrUnknown, err)
}

const (
	readBytes = 1 << 20
	// retryPause is the pause after an error of the log.
	retryPause = 100 * time.Millisecond
)

func (l *Log) apply(ctx context.Context) {
	for ctx.Err() == nil {
		from := l.appliedIndex() + 1
		entries, err := l.node.Entries(ctx, from, readBytes)
		var compacted *consensus.CompactedError
		if errors.As(err, &compacted) {
			l.o.Log.Warn("fetching a snapshot: the log no longer has the next entry", "from", from, "first", compacted.First)
			_, err = l.node.Fetch(ctx, 0)
		}
		if err == nil {
			l.applyAll(from, entries)
			l.startSnapshotIfDue()
			continue
		}
		if ctx.Err() == nil {
			l.o.Log.Warn("cannot read the replica's log", "applied", from-1, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-l.node.Done():
			return
		case <-time.After(retryPause):
		}
	}
}

// applyAll applies entries from index from on, unless another state was loaded meanwhile.
func (l *Log) applyAll(from uint64, entries []consensus.Entry) {
	l.state.Lock()
	defer l.state.Unlock()
	if len(entries) == 0 || l.appliedIndex()+1 != from {
		return
	}
	for _, e := range entries {
		if len(e.Data) < headerSize {
			continue // entry of the consensus layer
		}
		run, seq := binary.LittleEndian.Uint64(e.Data), binary.LittleEndian.Uint64(e.Data[8:])
		result := l.machine.Apply(e.Index, e.Data[headerSize:])
		l.written += int64(len(e.Data))
		if run == l.run {
			l.deliver(seq, result)
		}
	}
	l.advance(entries[len(entries)-1].Index)
}

func (l *Log) deliver(seq uint64, result any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if waiting, ok := l.waiting[seq]; ok {
		waiting <- result // never blocks: one result, capacity 1
		delete(l.waiting, seq)
	}
}

func (l *Log) appliedIndex() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.applied
}

func (l *Log) advance(index uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.applied = index
	close(l.grown)
	l.grown = make(chan struct{})
}

func (l *Log) awaitApplied(ctx context.Context, index uint64) error {
	for {
		l.mu.Lock()
		applied, grown := l.applied, l.grown
		l.mu.Unlock()
		if applied >= index {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.node.Done():
			return consensus.ErrClosed
		}
	}
}
