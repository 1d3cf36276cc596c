package replica

import (
	"context"
	"fmt"
	"io"
	"time"

	"skerry/systems/metadata/changelog"
)

// startSnapshotIfDue begins a snapshot where it is time: it is written while records are applied.
func (l *Log) startSnapshotIfDue() {
	if !l.snapping.TryLock() {
		return
	}
	if !l.snapshotDue() {
		l.snapping.Unlock()
		return
	}
	s, index, err := l.captureState()
	if err != nil {
		l.snapping.Unlock()
		l.o.Log.Warn("no snapshot of the replica: its log grows on", "error", err)
		return
	}
	l.snapshots.Go(func() {
		defer l.snapping.Unlock()
		defer s.Close()
		start := time.Now()
		if err := l.saveSnapshot(index, s.Write); err != nil {
			l.o.Log.Warn("no snapshot of the replica: its log grows on", "error", err)
			return
		}
		l.o.Log.Debug("snapshot of the replica", "index", index, "bytes", l.snapBytes.Load(), "took", time.Since(start))
		l.node.Applied(index)
	})
}

// snapshotDue tells whether enough was applied for a snapshot. The next one is due after as many
// bytes, whatever becomes of this one.
func (l *Log) snapshotDue() bool {
	l.state.Lock()
	defer l.state.Unlock()
	if l.written < max(l.o.SnapshotBytes, l.snapBytes.Load()) {
		return false
	}
	l.written = 0
	return true
}

// captureState takes the state as it is, with its index; snapping is held.
func (l *Log) captureState() (changelog.Snapshot, uint64, error) {
	l.state.Lock()
	defer l.state.Unlock()
	s, err := l.machine.Snapshot()
	return s, l.appliedIndex(), err
}

// saveSnapshot makes a state durable; snapping is held.
func (l *Log) saveSnapshot(index uint64, write func(io.Writer) error) error {
	size, err := changelog.SaveSnapshot(l.dir, index, write)
	if err == nil {
		l.durable.Store(int64(index))
		l.snapBytes.Store(size)
	}
	return err
}

// snapshotter is the Log as a consensus.Snapshotter.
type snapshotter struct{ *Log }

// Save is consensus.Snapshotter's.
func (l snapshotter) Save(_ context.Context, w io.Writer) (uint64, error) {
	l.snapping.Lock()
	defer l.snapping.Unlock()
	s, index, err := l.captureState()
	if err != nil {
		return 0, fmt.Errorf("saving a replica's state: %w", err)
	}
	defer s.Close()
	return index, s.Write(w)
}

// Load is consensus.Snapshotter's. The state is on this disk when it returns, since the log
// goes on behind it.
func (l snapshotter) Load(_ context.Context, index uint64, r io.Reader) error {
	l.snapping.Lock()
	defer l.snapping.Unlock()
	if index <= l.appliedIndex() {
		return l.saveOwnState(r)
	}
	l.state.Lock()
	defer l.state.Unlock()
	err := l.saveSnapshot(index, func(w io.Writer) error {
		if err := l.machine.Restore(io.TeeReader(r, w)); err != nil {
			return err
		}
		l.written = 0
		l.advance(index)
		return nil
	})
	if err != nil {
		return fmt.Errorf("loading another replica's state: %w", err)
	}
	return nil
}

// saveOwnState makes this replica's own state durable in place of an earlier one that was
// offered.
func (l snapshotter) saveOwnState(r io.Reader) error {
	if _, err := io.Copy(io.Discard, r); err != nil {
		return fmt.Errorf("loading another replica's state: %w", err)
	}
	s, index, err := l.captureState()
	if err != nil {
		return fmt.Errorf("keeping a replica's state: %w", err)
	}
	defer s.Close()
	return l.saveSnapshot(index, s.Write)
}
