package replica

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"skerry/systems/consensus"
)

const (
	// readBytes is how much of the log is read at once.
	readBytes = 1 << 20
	// again is the pause after an error of the log.
	retryPause = 100 * time.Millisecond
)

// apply applies the log until ctx ends.
func (l *Log) apply(ctx context.Context) {
	for ctx.Err() == nil {
		from := l.appliedIndex() + 1
		entries, err := l.node.Entries(ctx, from, readBytes)
		var compacted *consensus.CompactedError
		if errors.As(err, &compacted) {
			l.o.Log.Warn("the log no longer holds what this replica lacks", "from", from, "first", compacted.First)
			_, err = l.node.Fetch(ctx, 0)
		}
		if err == nil {
			l.applyAll(from, entries)
			l.startSnapshotIfDue()
			continue
		}
		if ctx.Err() == nil {
			l.o.Log.Warn("the replica stands still", "applied", from-1, "error", err)
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
			continue // the log's own
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

// deliver tells the caller of Append, if it still waits.
func (l *Log) deliver(seq uint64, result any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if waiting, ok := l.waiting[seq]; ok {
		waiting <- result // of a record that is applied once, into a channel for one
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

// awaitApplied waits until what the log has up to index is applied.
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
