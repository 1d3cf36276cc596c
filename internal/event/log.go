package event

import (
	"slices"
	"sync"

	"skerry/internal/record"
)

// eventLog keeps what has happened, and hands on every change of it.
type eventLog struct {
	write  func(record.Event) error
	failed func() // called when that fails

	mu     sync.Mutex
	events []record.Event // that of ID n at n-1
	first  error
}

// begin gives an event its ID.
func (l *eventLog) begin(e *record.Event) {
	l.mu.Lock()
	e.ID = len(l.events) + 1
	l.events = append(l.events, record.Event{})
	l.mu.Unlock()
	l.save(*e)
}

// save takes the event as it is: its steps go on changing.
func (l *eventLog) save(e record.Event) {
	e.Apply, e.Revert = copied(e.Apply), copied(e.Revert)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events[e.ID-1] = e
	if l.first != nil {
		return
	}
	if l.first = l.write(e); l.first != nil && l.failed != nil {
		l.failed()
	}
}

func copied(s *record.Step) *record.Step {
	if s == nil {
		return nil
	}
	c := *s
	return &c
}

func (l *eventLog) all() []record.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

func (l *eventLog) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}
