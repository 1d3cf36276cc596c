package event

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"skerry/internal/database"
	"skerry/internal/record"
)

// applyTimeout bounds applying an event. A rolling restart takes up to a minute per node.
const applyTimeout = 10 * time.Minute

// revertTimeout bounds reverting an event after the trial has ended. Starting a database takes up
// to a minute.
const revertTimeout = 2 * time.Minute

// interruptedRevertTimeout applies if the trial was interrupted, since its lab is removed anyway.
const interruptedRevertTimeout = 5 * time.Second

var errTrialEnded = errors.New("the trial ended before it was complete")

// occurrence is one occurrence of an entry while it happens.
type occurrence struct {
	drawnOccurrence
	r     *Runner
	entry *entry
	due   time.Duration
	event record.Event
}

func (o *occurrence) begin() {
	now := o.r.now()
	o.fillEvent(now)
	o.event.State = record.EventBegun
	o.event.Apply = &record.Step{Due: o.moment(o.due), Began: o.momentPtr(now)}
	o.event.Targets, o.event.Message = o.action.targets(), o.action.what()
	if carried := o.r.World.Carried; carried != nil && o.event.Effect.On == record.OnLinks {
		o.event.Carried = carried(o.event.Targets)
	}
	o.r.log.begin(&o.event)
}

func (o *occurrence) fillEvent(at time.Duration) {
	e := o.entry
	effect := e.Spec.kind.Effect
	o.event = record.Event{
		T: at.Seconds(), Kind: e.Kind(), Effect: &effect, Entry: e.index, Turn: o.turn + 1,
		Name: e.Name, Spec: e.specJSON, Source: e.source,
	}
	if e.source != "" {
		o.event.Entry = -1
	}
}

// skip records that the entry never happened.
func (o *occurrence) skip(why string) {
	o.fillEvent(o.r.now())
	o.event.Turn = 0
	o.event.State, o.event.Message, o.event.Error = record.EventSkipped, o.entry.Label(), why
	o.r.log.begin(&o.event)
}

// run applies the event and reverts it at its end, or when ctx ends.
func (o *occurrence) run(ctx context.Context) {
	work := ctx
	_, outside := o.action.(outsideAction)
	if !o.entry.Spec.kind.permanent() && !outside { // an event that started late is completed, then reverted
		var cancel context.CancelFunc
		work, cancel = context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
		defer cancel()
	}
	err := o.step(work, ctx, o.event.Apply, o.action.apply)
	if err != nil {
		kind := o.entry.Spec.kind
		if kind.revertible() && !(kind.permanent() && ctx.Err() != nil) { // otherwise the lab is removed: there is nothing to revert
			err = errors.Join(err, o.revert(ctx, o.r.now()))
		}
		o.fail(err)
		o.notify(note{over: true})
		return
	}
	o.event.State = record.EventActive
	o.save()
	over := o.endTime()
	o.notify(note{completed: true, over: over < 0})
	if err := o.awaitEnd(ctx, over); err != nil {
		o.fail(errors.Join(err, o.revert(ctx, o.r.now())))
		o.notify(note{over: over >= 0})
		return
	}
	if ctx.Err() != nil {
		if o.entry.Spec.kind.permanent() {
			return
		}
		over = o.r.now()
	}
	if err := o.revert(ctx, over); err != nil {
		o.fail(err)
		o.notify(note{over: true})
		return
	}
	o.event.State = record.EventReverted
	o.save()
	o.notify(note{reverted: true, over: true})
}

// endTime is when to revert the event, negative for the end of the trial.
func (o *occurrence) endTime() time.Duration {
	over := time.Duration(-1)
	if o.duration >= 0 {
		over = time.Duration(o.event.Apply.Completed.NS) + o.duration
	}
	if u := o.entry.Until; u != nil && (over < 0 || u.Duration() < over) {
		over = max(u.Duration(), o.r.now())
	}
	return over
}

// awaitEnd waits for the end of the event. It returns an error if the action failed before.
func (o *occurrence) awaitEnd(ctx context.Context, over time.Duration) error {
	var end <-chan time.Time
	if over >= 0 {
		timer := time.NewTimer(over - o.r.now())
		defer timer.Stop()
		end = timer.C
	}
	var ended <-chan struct{}
	f, ok := o.action.(fragile)
	if ok {
		ended = f.ended()
	}
	select {
	case <-ctx.Done():
	case <-end:
	case <-ended:
		return f.err()
	}
	return nil
}

// revert reverts the event, even after ctx has ended. A change of membership is not reverted then,
// since it could delay the end of the trial without limit.
func (o *occurrence) revert(trial context.Context, due time.Duration) error {
	ctx := trial
	if !o.entry.Spec.kind.permanent() {
		timeout := revertTimeout
		if f := o.r.Interrupted; f != nil && f() {
			timeout = interruptedRevertTimeout
		}
		if x, ok := o.action.(outsideAction); ok {
			timeout = x.revertLimit()
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
	}
	o.event.Revert = &record.Step{Due: o.moment(due), Began: o.momentPtr(o.r.now())}
	o.save()
	if err := o.step(ctx, trial, o.event.Revert, o.action.revert); err != nil {
		return fmt.Errorf("revert: %w", err)
	}
	return nil
}

// step makes one change and records its times. A change of links is confirmed in the background
// while the trial measures.
func (o *occurrence) step(ctx, trial context.Context, s *record.Step, change func(context.Context, *Testbed, *progress) error) error {
	p := progress{finishMember: func(m record.MemberStep, began time.Time, c database.Change) {
		m.Began = momentSince(o.r.zero, began)
		if c.Accepted > 0 {
			m.Accepted = o.momentPtr(began.Add(c.Accepted).Sub(o.r.zero))
		}
		if c.Complete > 0 {
			m.Completed = o.momentPtr(began.Add(c.Complete).Sub(o.r.zero))
		}
		s.Members = append(s.Members, m)
		o.save()
	}}
	err := change(ctx, o.r.World, &p)
	now := o.r.now()
	accepted, bytes := p.acceptance()
	s.Bytes, s.Commands = bytes, p.ranCommands()
	if !accepted.IsZero() {
		s.Accepted = o.momentPtr(accepted.Sub(o.r.zero))
	}
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", errTrialEnded, err)
		}
		return err
	}
	s.Completed = o.momentPtr(now)
	if s.Accepted == nil {
		s.Accepted = o.momentPtr(now)
	}
	if u := p.linkUpdate(); len(u.changes) > 0 && trial.Err() == nil {
		id, reverts := o.event.ID, s == o.event.Revert
		o.r.running.Go(func() {
			if seen := o.r.World.Links.Confirm(trial, o.r.zero, u); seen != nil {
				o.r.log.addObserved(id, reverts, seen)
			}
		})
	}
	return nil
}

func (o *occurrence) fail(err error) {
	o.event.State = record.EventFailed
	o.event.Error = err.Error()
	o.save()
}

func (o *occurrence) notify(n note) {
	n.entry, n.at = o.entry.index, o.r.now()
	o.r.notes <- n
}

func (o *occurrence) save() { o.r.log.save(o.event) }

func (o *occurrence) moment(d time.Duration) record.Moment {
	return record.Moment{NS: int64(d), Wall: o.r.zero.Add(d)}
}

func (o *occurrence) momentPtr(d time.Duration) *record.Moment {
	m := o.moment(d)
	return &m
}

// progress collects what an action reports. It is safe for concurrent use.
type progress struct {
	// finishMember records the upgrade of one member. The change itself calls it.
	finishMember func(m record.MemberStep, began time.Time, c database.Change)

	mu       sync.Mutex
	accepted time.Time
	bytes    int64
	update   LinkUpdate
	commands []record.RanCommand
}

// accept records when the request was accepted. Of several requests the last one counts.
func (p *progress) accept(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepted = at
}

func (p *progress) acceptNow() { p.accept(time.Now()) }

func (p *progress) addBytes(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += bytes
}

func (p *progress) addCommand(c record.RanCommand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commands = append(p.commands, c)
}

func (p *progress) ranCommands() []record.RanCommand {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.commands
}

func (p *progress) setLinkUpdate(u LinkUpdate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.update = u
}

func (p *progress) linkUpdate() LinkUpdate {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.update
}

func (p *progress) acceptance() (accepted time.Time, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted, p.bytes
}
