package changelog

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

// run writes groups until the journal is closed and nothing waits.
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

// commitAll writes what waits, and tells whether the journal was closed.
func (j *Journal) commitAll() bool {
	for {
		// Those that the last group answered run first: what they ask next is in this group,
		// which halves the fsyncs of clients that ask one after the other.
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

// commit makes the first records of the batch durable as one group, applies them, and
// tells how many they were.
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

// writeBuffer appends the buffer to the log.
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

// maintain begins a new segment, and a snapshot, where it is time.
func (j *Journal) maintain() {
	if j.segment.size >= j.o.SegmentBytes {
		if err := j.rotate(); err != nil {
			j.o.Log.Warn("the journal's segment grows on", "error", err)
		}
	}
	if j.snapshots == nil && j.written >= max(j.o.SnapshotBytes, j.snapBytes.Load()) {
		j.beginSnapshot()
	}
}

// rotate begins a new segment; the old one is complete.
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
