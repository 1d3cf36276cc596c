package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/progress"
	"skerry/internal/record"
	"skerry/internal/run/live"
	"skerry/internal/run/trial"
)

// lane is where trials run one after another, each on a lab of its own or on one that the trial
// before left there. A run has one, or several side by side:
//
//	lane 1  │ trial 3 │ trial 1 │ ...
//	lane 2            │ trial 2 │ ...     as long as there is room
type lane struct {
	kept     trial.Kept // what trials that reuse clusters leave to each other
	turns    *trial.Turns
	live     *live.Feed // nil where nobody can look, and of all lanes but the first
	progress *progress.Reporter
	at       *attempt // nil while it is free
}

// attempt is a trial under way.
type attempt struct {
	planned record.Planned
	lane    *lane
	number  int
	forms   bool // a cluster, and does not reuse an earlier trial's
	begun   time.Time
	beside  atomic.Int64 // how many others ran at the same time, at the most
	result  record.Trial
	err     error
}

// lanes run what is left of a plan.
type lanes struct {
	*run
	room        *room
	all         []*lane
	left        []record.Planned // not begun
	total, done int              // of the plan; ended, also in earlier attempts at the run
	ended       chan *attempt

	took           took
	failed, inARow int
	stopped        error // why no more trials are begun
}

func (r *run) newLanes(left []record.Planned) *lanes {
	plan := r.writer.Run().Plan
	l := &lanes{run: r, room: roomFor(r.Experiment.Parallel), left: left, total: len(plan), done: len(plan) - len(left), ended: make(chan *attempt)}
	l.room.recall(plan, r.writer.Summary().Trials)
	if l.room.most == 1 {
		l.all = []*lane{{live: r.live, turns: r.Turns, progress: r.Progress}}
		return l
	}
	turns := trial.NewTurns()
	for range l.room.most {
		l.all = append(l.all, &lane{turns: turns, progress: r.Progress.Part()})
	}
	l.all[0].live = r.live
	return l
}

// drive runs all that is left. Whatever ends it, no trial is under way when it returns.
func (l *lanes) drive(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for {
		for l.begin(ctx) {
		}
		l.tell()
		running := l.running()
		if len(running) == 0 {
			return l.stopped
		}
		a := <-l.ended
		a.lane.at = nil
		if a.err != nil { // it could not be recorded
			l.stopped = errors.Join(l.stopped, a.err)
			stop()
			continue
		}
		l.take(ctx, a)
	}
}

// begin begins the next trial in a free lane where there is room for it.
func (l *lanes) begin(ctx context.Context) bool {
	if len(l.left) == 0 || l.stopped != nil || ctx.Err() != nil && len(l.running()) > 0 {
		return false
	}
	to, next := l.match()
	if to == nil || !l.room.admits(l.running(), l.left[next]) {
		return false
	}
	a := &attempt{planned: l.left[next], lane: to, number: l.done + len(l.running()) + 1, begun: time.Now()}
	l.left = slices.Delete(slices.Clone(l.left), next, next+1)
	a.forms = !l.reuses(a.planned.ID, to.kept.Footing())
	to.at = a
	label := l.label(a)
	for _, x := range l.all {
		if x.at != nil {
			x.at.beside.Store(max(x.at.beside.Load(), int64(len(l.running())-1)))
		}
	}
	go func() { // drive waits for it
		a.result, a.err = l.trial(ctx, a, label)
		l.ended <- a
	}()
	return true
}

// match is a free lane and the trial that it takes: the next one, or where lanes have kept
// clusters, the first that can run on one.
func (l *lanes) match() (to *lane, next int) {
	for _, x := range l.all {
		if x.at != nil {
			continue
		}
		if to == nil {
			to = x
		}
		if kept := x.kept.Footing(); kept != "" && len(l.all) > 1 {
			at := slices.IndexFunc(l.left, func(p record.Planned) bool { return l.reuses(p.ID, kept) })
			if at >= 0 {
				return x, at
			}
		}
	}
	return to, 0
}

func (l *lanes) running() (all []record.Planned) {
	for _, x := range l.all {
		if x.at != nil {
			all = append(all, x.at.planned)
		}
	}
	return all
}

// label begins every line of a trial's progress.
func (l *lanes) label(a *attempt) string {
	if len(l.all) > 1 {
		return fmt.Sprintf("trial %d", a.planned.ID)
	}
	label := fmt.Sprintf("trial %d of %d %s", a.number, l.total, l.describe(a.planned))
	if l.took.known() {
		on := a.lane.kept.Footing()
		label += fmt.Sprintf(" (%s left)", roughly(l.took.left(l.ahead(on, slices.Concat([]record.Planned{a.planned}, l.left)))))
	}
	return label
}

// take takes in a trial that has ended.
func (l *lanes) take(ctx context.Context, a *attempt) {
	l.took.add(a.forms, time.Since(a.begun))
	if len(l.all) > 1 {
		a.lane.progress.Done()
	}
	t := a.result
	if t.State == record.TrialInterrupted {
		l.report(fmt.Sprintf("trial %d", a.planned.ID), a.planned, t)
		if l.stopped == nil {
			l.stopped = advice.With(fmt.Errorf("interrupted after %d of %d trials: %w", l.done, l.total, context.Cause(ctx)),
				"go on with: skerry run --resume %s", l.writer.Dir())
		}
		return
	}
	l.done++
	l.room.learn(a.planned, t)
	l.report(fmt.Sprintf("%*d/%d", len(fmt.Sprint(l.total)), l.done, l.total), a.planned, t)
	if a.lane.live == nil { // it has told so itself otherwise
		t.ID = a.planned.ID
		l.live.End(t)
	}
	if t.State != record.TrialFailed {
		l.inARow = 0
		return
	}
	l.failed++
	if l.inARow++; l.inARow == failuresInARow && len(l.left) > 0 && l.stopped == nil {
		l.stopped = l.givenUp(l.inARow, t)
	}
}

// tell tells onlookers of all lanes where there are several.
func (l *lanes) tell() {
	if len(l.all) == 1 {
		return
	}
	t := live.Tasks{On: "this machine", Waiting: len(l.left), Done: l.done, Failed: l.failed, At: []live.TaskAt{}, Troubles: []live.Trouble{}}
	for i, x := range l.all {
		if x.at != nil {
			t.Running++
			t.At = append(t.At, live.TaskAt{Task: x.at.planned.ID, Trials: []int{x.at.planned.ID}, Where: fmt.Sprintf("lane %d", i+1), Since: x.at.begun})
		}
	}
	for _, x := range l.writer.Summary().Trials {
		if x.Verdict.State == record.Suspect {
			t.Suspect++
		}
	}
	if l.took.known() {
		t.LeftS = l.took.left(l.ahead("", l.left)).Seconds() / float64(max(1, t.Running))
	}
	l.live.Tasks(t)
}

// leave ends what lanes have kept.
func (l *lanes) leave(ctx context.Context, some []*lane) error {
	var errs []error
	for _, x := range some {
		errs = append(errs, x.kept.Close(ctx))
	}
	return errors.Join(errs...)
}

// alone is the first lane, when nothing runs beside it any more.
func (l *lanes) alone() *lane {
	l.all[0].turns = l.Turns
	return l.all[0]
}
