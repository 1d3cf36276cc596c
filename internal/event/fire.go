package event

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/database"
	"skerry/internal/record"
)

var (
	// ErrInvalid marks an event that cannot be fired.
	ErrInvalid = errors.New("invalid event")
	// ErrNotRunning means that the measurement has ended.
	ErrNotRunning = errors.New("no measurement is under way")
)

// Parse reads one event in the form of the experiment file, in YAML or JSON.
func Parse(text []byte) (Event, error) {
	var e Event
	root, err := strict.Parse("event", text)
	if err != nil {
		return e, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if ps := strict.Decode(root, &e, ""); len(ps) > 0 {
		return e, advice.With(fmt.Errorf("%w: %s", ErrInvalid, ps[0].Message), "%s", hintOrDefault(ps[0].Hint))
	}
	return e, nil
}

func hintOrDefault(hint string) string {
	if hint == "" {
		return "see docs/events.md for the kinds of events"
	}
	return hint
}

// CheckFired returns why an event cannot be fired on a layout that runs the named database. A fired
// event starts at once and does not repeat; it may have a duration.
func CheckFired(e Event, s Layout, name string, can database.Capabilities) error {
	var first error
	report := func(path, hint, format string, args ...any) {
		if first != nil {
			return
		}
		where := strings.TrimPrefix(strings.TrimPrefix(path, "[0]"), ".")
		if where != "" {
			where += ": "
		}
		first = fmt.Errorf("%w: %s%s", ErrInvalid, where, fmt.Sprintf(format, args...))
		if hint != "" {
			first = advice.With(first, "%s", hint)
		}
	}
	if e.At != nil || e.When != "" || e.After > 0 || e.Every != nil || e.Gap != nil || e.Churn != nil || e.Until != nil {
		report("", "remove at, when, after, every, gap, churn and until", "a fired event starts at once and does not repeat")
		return first
	}
	if prepares := e.Spec.kind.Preparation; prepares != "" {
		report("", "add it to the experiment", "%s needs %s", e.Kind(), prepares)
		return first
	}
	now := e
	now.At = new(unit.Duration)
	Check([]Event{now}, s, 0, report)
	if first == nil {
		CheckDatabase([]Event{now}, s, name, can, report)
	}
	return first
}

type fireRequest struct {
	event  Event
	source string
	answer chan<- fireResult
}

type fireResult struct {
	event record.Event
	err   error
}

// Fire starts an event that passed CheckFired, while Run runs. source names who asked for it and
// goes into the record. The event is reverted after Event.For, or at the end of the trial. Fire
// returns the event as recorded at its start.
func (r *Runner) Fire(ctx context.Context, e Event, source string) (record.Event, error) {
	answer := make(chan fireResult, 1)
	select {
	case r.fired <- fireRequest{e, source, answer}:
	case <-r.closing:
		return record.Event{}, ErrNotRunning
	case <-ctx.Done():
		return record.Event{}, ctx.Err()
	}
	a := <-answer
	return a.event, a.err
}

func (r *Runner) startFired(ctx context.Context, f fireRequest) {
	x, err := newEntry(f.event, len(r.entries), r.Stage, r.Seed)
	if err != nil {
		f.answer <- fireResult{err: err}
		return
	}
	x.source = f.source
	h := x.draw(0)
	if h.action == nil {
		f.answer <- fireResult{err: fmt.Errorf("%w: no eligible target", errState)}
		return
	}
	r.entries = append(r.entries, &entryState{entry: x, began: true, active: 1})
	o := &occurrence{r: r, entry: x, drawnOccurrence: h, due: r.now()}
	o.begin()
	began := o.event
	began.Apply = copyStep(began.Apply)
	r.running.Go(func() { o.run(ctx) })
	f.answer <- fireResult{event: began}
}
