package replica

import (
	"context"
	"fmt"
	"io"
	"time"

	"skerry/systems/metadata/changelog"
)

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
		l.o.Log.Warn("replica snapshot failed; the log keeps growing", "error", err)
		return
	}
	l.snapshots.Go(func() {
		defer l.snapping.Unlock()
		defer s.Close()
		start := time.Now()
		if err := l.saveSnapshot(index, s.Write); err != nil {
			l.o.Log.Warn("replica snapshot failed; the log keeps growing", "error", err)
			return
		}
		l.o.Log.Debug("replica snapshot written", "index", index, "bytes", l.snapBytes.Load(), "took", time.Since(start))
		l.node.Applied(index)
	})
}

func (l *Log) snapshotDue() bool {
	l.state.Lock()
	defer l.state.Unlock()
	if l.written < max(l.o.SnapshotBytes, l.snapBytes.Load()) {
		return false
	}
	l.written = 0
	return true
}

func (l *Log) captureState() (changelog.Snapshot, uint64, error) {
	l.state.Lock()
	defer l.state.Unlock()
	s, err := l.machine.Snapshot()
	return s, l.appliedIndex(), err
}

func (l *Log) saveSnapshot(index uint64, write func(io.Writer) error) error {
	size, err := changelog.SaveSnapshot(l.dir, index, write)
	if err == nil {
		l.durable.Store(int64(index))
		l.snapBytes.Store(size)
	}
	return err
}

// snapshotter implements consensus.Snapshotter for a Log.
type snapshotter struct{ *Log }

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

// Load implements consensus.Snapshotter. The state is durable when Load returns, because the log continues after it.
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

// saveOwnState saves the replica's own state instead of an older state from another replica.
func (l snapshotter) saveOwnState(r io.Reader) error {
	if _, err := io.Copy(io.Discard, r); err != nil {
		return fmt.Errorf("loading another replica's state: %w", err)
	}
	s, index, err := l.captureState()
	if err != nil {
		return fmt.Errorf("saving the replica's state: %w", err)
	}
	defer s.Close()
	return l.saveSnapshot(index, s.Write)
}
