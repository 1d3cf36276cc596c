package event

import (
	"slices"
	"sync"

	"skerry/internal/record"
)

// eventLog holds all events and writes every change of them. A separate goroutine writes, so that a
// slow disk does not delay events.
type eventLog struct {
	mu     sync.Mutex
	events []record.Event // the event with ID n is at n-1
	lines  []record.Event // not yet written
	// observed is the emulator's confirmation of each event's steps, by event ID.
	observed map[int]*[2]*record.Observed // apply, revert
	closed   bool
	changed  *sync.Cond // lines were added, or closed
}

func newEventLog() *eventLog {
	l := &eventLog{observed: map[int]*[2]*record.Observed{}}
	l.changed = sync.NewCond(&l.mu)
	return l
}

func (l *eventLog) begin(e *record.Event) {
	l.mu.Lock()
	e.ID = len(l.events) + 1
	l.events = append(l.events, record.Event{})
	l.mu.Unlock()
	l.save(*e)
}

// save records the event. It copies the steps, which continue to change.
func (l *eventLog) save(e record.Event) {
	e.Apply, e.Revert = copyStep(e.Apply), copyStep(e.Revert)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.update(e)
}

// update replaces an event whose steps are copies. The caller holds mu.
func (l *eventLog) update(e record.Event) {
	if seen := l.observed[e.ID]; seen != nil {
		for i, s := range []*record.Step{e.Apply, e.Revert} {
			if s != nil {
				s.Observed = seen[i]
			}
		}
	}
	l.events[e.ID-1] = e
	l.lines = append(l.lines, e)
	l.changed.Signal()
}

func (l *eventLog) addObserved(id int, reverts bool, seen *record.Observed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.observed[id] == nil {
		l.observed[id] = new([2]*record.Observed)
	}
	step := 0
	if reverts {
		step = 1
	}
	l.observed[id][step] = seen
	e := l.events[id-1]
	e.Apply, e.Revert = copyStep(e.Apply), copyStep(e.Revert)
	l.update(e)
}

func copyStep(s *record.Step) *record.Step {
	if s == nil {
		return nil
	}
	c := *s
	return &c
}

// write writes every line until close is called and no line is left, or until a write fails.
func (l *eventLog) write(line func(record.Event) error) error {
	for {
		l.mu.Lock()
		for len(l.lines) == 0 && !l.closed {
			l.changed.Wait()
		}
		lines := l.lines
		l.lines = nil
		l.mu.Unlock()
		if len(lines) == 0 {
			return nil
		}
		for _, e := range lines {
			if err := line(e); err != nil {
				return err
			}
		}
	}
}

func (l *eventLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.changed.Signal()
}

func (l *eventLog) all() []record.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}
