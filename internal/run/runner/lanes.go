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

// lane runs trials one after another, each on its own lab or on one that the previous trial left. A run has
// one or several lanes:
//
//	lane 1  │ trial 3 │ trial 1 │ ...
//	lane 2            │ trial 2 │ ...     while there is capacity
type lane struct {
	pool     trial.ClusterPool // clusters for reuse
	phases   *trial.PhaseScheduler
	live     *live.Feed // nil without followers, and in all lanes except the first
	progress *progress.Reporter
	at       *attempt // nil while the lane is free
}

type attempt struct {
	planned record.Planned
	lane    *lane
	number  int
	forms   bool // starts a cluster instead of reusing one
	begun   time.Time
	beside  atomic.Int64 // highest number of concurrent trials
	result  record.Trial
	err     error
}

type lanes struct {
	*run
	capacity    *capacity
	all         []*lane
	left        []record.Planned // not started
	total, done int              // trials in the plan, and ended ones including earlier attempts at the run
	ended       chan *attempt

	times          trialTimes
	failed, inARow int
	stopped        error // why no more trials start
}

func (r *run) newLanes(left []record.Planned) *lanes {
	plan := r.writer.Run().Plan
	l := &lanes{
		run: r, capacity: newCapacity(r.Experiment.Parallel), left: left, total: len(plan),
		done: len(plan) - len(left), ended: make(chan *attempt),
	}
	l.capacity.restoreUse(plan, r.writer.Summary().Trials)
	if l.capacity.maxLanes == 1 {
		l.all = []*lane{{live: r.live, phases: r.Phases, progress: r.Progress}}
		return l
	}
	turns := trial.NewPhaseScheduler()
	for range l.capacity.maxLanes {
		l.all = append(l.all, &lane{phases: turns, progress: r.Progress.Part()})
	}
	l.all[0].live = r.live
	return l
}

// runAll runs all remaining trials. No trial is running when it returns.
func (l *lanes) runAll(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for {
		for l.startNext(ctx) {
		}
		l.publishLanes()
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
		l.finishTrial(ctx, a)
	}
}

func (l *lanes) startNext(ctx context.Context) bool {
	if len(l.left) == 0 || l.stopped != nil || ctx.Err() != nil && len(l.running()) > 0 {
		return false
	}
	to, next := l.pickTrial()
	if to == nil || !l.capacity.admits(l.running(), l.left[next]) {
		return false
	}
	a := &attempt{planned: l.left[next], lane: to, number: l.done + len(l.running()) + 1, begun: time.Now()}
	l.left = slices.Delete(slices.Clone(l.left), next, next+1)
	a.forms = !l.reusesCluster(a.planned.ID, to.pool.Key())
	to.at = a
	label := l.label(a)
	for _, x := range l.all {
		if x.at != nil {
			x.at.beside.Store(max(x.at.beside.Load(), int64(len(l.running())-1)))
		}
	}
	go func() { // drive waits for it
		a.result, a.err = l.runTrial(ctx, a, label)
		l.ended <- a
	}()
	return true
}

// pickTrial returns a free lane and the index of its next trial: preferably one that reuses the lane's
// cluster.
func (l *lanes) pickTrial() (to *lane, next int) {
	for _, x := range l.all {
		if x.at != nil {
			continue
		}
		if to == nil {
			to = x
		}
		if kept := x.pool.Key(); kept != "" && len(l.all) > 1 {
			at := slices.IndexFunc(l.left, func(p record.Planned) bool { return l.reusesCluster(p.ID, kept) })
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

func (l *lanes) label(a *attempt) string {
	if len(l.all) > 1 {
		return fmt.Sprintf("trial %d", a.planned.ID)
	}
	label := fmt.Sprintf("trial %d of %d %s", a.number, l.total, l.describe(a.planned))
	if l.times.known() {
		on := a.lane.pool.Key()
		label += fmt.Sprintf(
			" (%s left)",
			formatTimeLeft(l.times.estimate(l.countForming(on, slices.Concat([]record.Planned{a.planned}, l.left)))),
		)
	}
	return label
}

func (l *lanes) finishTrial(ctx context.Context, a *attempt) {
	l.times.add(a.forms, time.Since(a.begun))
	if len(l.all) > 1 {
		a.lane.progress.Done()
	}
	t := a.result
	if t.State == record.TrialInterrupted {
		l.report(fmt.Sprintf("trial %d", a.planned.ID), a.planned, t)
		if l.stopped == nil {
			l.stopped = advice.With(fmt.Errorf("interrupted after %d of %d trials: %w", l.done, l.total, context.Cause(ctx)),
				"resume with: skerry run --resume %s", l.writer.Dir())
		}
		return
	}
	l.done++
	l.capacity.recordUse(a.planned, t)
	l.report(fmt.Sprintf("%*d/%d", len(fmt.Sprint(l.total)), l.done, l.total), a.planned, t)
	if a.lane.live == nil { // it has told so itself otherwise
		t.ID = a.planned.ID
		l.live.EndTrial(t)
	}
	if t.State != record.TrialFailed {
		l.inARow = 0
		return
	}
	l.failed++
	if l.inARow++; l.inARow == failuresInARow && len(l.left) > 0 && l.stopped == nil {
		l.stopped = l.abortError(l.inARow, t)
	}
}

func (l *lanes) publishLanes() {
	if len(l.all) == 1 {
		return
	}
	t := live.Tasks{On: "this machine", Waiting: len(l.left), Done: l.done, Failed: l.failed, At: []live.TaskAt{}, Troubles: []live.Trouble{}}
	for i, x := range l.all {
		if x.at != nil {
			t.Running++
			t.At = append(
				t.At,
				live.TaskAt{Task: x.at.planned.ID, Trials: []int{x.at.planned.ID}, Where: fmt.Sprintf("lane %d", i+1), Since: x.at.begun},
			)
		}
	}
	for _, x := range l.writer.Summary().Trials {
		if x.Verdict.State == record.Suspect {
			t.Suspect++
		}
	}
	if l.times.known() {
		t.LeftS = l.times.estimate(l.countForming("", l.left)).Seconds() / float64(max(1, t.Running))
	}
	l.live.SetTasks(t)
}

func (l *lanes) closePools(ctx context.Context, some []*lane) error {
	var errs []error
	for _, x := range some {
		errs = append(errs, x.pool.Close(ctx))
	}
	return errors.Join(errs...)
}

func (l *lanes) soleLane() *lane {
	l.all[0].phases = l.Phases
	return l.all[0]
}

// trialTimes are the durations of trials. Those that start a cluster may take minutes longer than those
// that reuse one.
type trialTimes struct{ forming, reusing []time.Duration }

func (t *trialTimes) add(forms bool, d time.Duration) {
	if forms {
		t.forming = append(t.forming, d)
	} else {
		t.reusing = append(t.reusing, d)
	}
}

func (t trialTimes) known() bool { return len(t.forming)+len(t.reusing) > 0 }

func (t trialTimes) estimate(forming, reusing int) time.Duration {
	return median(t.forming, t.reusing)*time.Duration(forming) + median(t.reusing, t.forming)*time.Duration(reusing)
}

// median returns the lower median of times, or of instead if times is empty; 0 if both are.
func median(times, instead []time.Duration) time.Duration {
	if len(times) == 0 {
		times = instead
	}
	if len(times) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(times))[(len(times)-1)/2]
}

func (r *run) reusesCluster(id int, footing string) bool {
	return footing != "" && r.clusterKeys[id] == footing
}

// countForming counts the trials that will start a cluster and those that will reuse one, if they run in
// this order after a cluster with key on.
func (r *run) countForming(on string, trials []record.Planned) (forming, reusing int) {
	for _, p := range trials {
		if r.reusesCluster(p.ID, on) {
			reusing++
		} else {
			forming++
		}
		on = r.clusterKeys[p.ID]
	}
	return forming, reusing
}
