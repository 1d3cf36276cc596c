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

// Sentinel errors of events that are fired by hand.
var (
	// ErrInvalid says that an event is not one that can be fired.
	ErrInvalid = errors.New("invalid event")
	// ErrNotRunning says that events cannot happen: the measurement has ended.
	ErrNotRunning = errors.New("no measurement is under way")
)

// Parse reads one event as an experiment would have it, in YAML or JSON.
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
		return "docs/events.md lists every kind of event"
	}
	return hint
}

// CheckFired tells why an event cannot be fired on a stage, on which a database of that name
// runs that can do what can says. Such an event begins at once, once; it may say for how long.
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
		report("", "leave out at, when, after, every, gap, churn and until", "an event that is fired happens at once, and once")
		return first
	}
	if prepares := e.Spec.kind.Preparation; prepares != "" {
		report("", "put it into the experiment", "%s needs %s", e.Kind(), prepares)
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

// fireRequest is an event on its way to the runner's goroutine.
type fireRequest struct {
	event  Event
	source string
	answer chan<- fireResult
}

type fireResult struct {
	event record.Event
	err   error
}

// Fire makes an event that CheckFired found nothing wrong with happen at once, beside those
// of the list, while Run runs. Source is who asked for it; its record says so. It is taken
// back as any other: after Event.For, or at the trial's end. What Fire returns is the event as
// it begins.
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

// startFired begins an event that was fired. Its entry stands behind those of the list.
func (r *Runner) startFired(ctx context.Context, f fireRequest) {
	x, err := newEntry(f.event, len(r.entries), r.Stage, r.Seed)
	if err != nil {
		f.answer <- fireResult{err: err}
		return
	}
	x.source = f.source
	h := x.draw(0)
	if h.action == nil {
		f.answer <- fireResult{err: fmt.Errorf("%w: nobody is left that it could happen to", ErrState)}
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
