package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/base/linger"
	"skerry/internal/record"
	"skerry/internal/run/executor"
	"skerry/internal/run/live"
	"skerry/internal/run/runner"
)

const (
	// maxTries is how often a task is handed over before it is given up.
	maxTries = 3
	// grace is how many polls must find a task over before its results are missed: names in a
	// network file system's directory are seen late.
	resultGracePolls = 3
	// hopeless is how many trials may fail before one has measured: then the others will fail, too.
	maxFirstFailures = 3
)

// runQueue goes on until nothing is with the engine and nothing is left to be handed over, or ctx ends.
func (s *dispatcher) runQueue(ctx context.Context) error {
	for {
		s.pace.begin()
		if err := s.step(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		if ctx.Err() != nil || len(s.open) == 0 && len(s.queue) == 0 {
			return nil
		}
		if linger.For(ctx, s.pace.next()) != nil {
			return nil
		}
	}
}

// step asks the engine, takes in results, judges what is over, and hands over what is next.
//
// Results are read after the engine was asked: what a task left before it was over is then seen.
func (s *dispatcher) step(ctx context.Context) error {
	found, asked := s.executor.Poll(ctx, s.state.Open)
	if errors.Is(asked, executor.ErrFatal) {
		return asked
	}
	if err := s.collect(); err != nil {
		return err
	}
	if asked == nil {
		s.updateTasks(found)
	} else if ctx.Err() == nil {
		s.Progress.Livef("%v; asking again", asked)
	}
	if err := s.submit(ctx); err != nil {
		return err
	}
	s.publishTasks()
	return s.saveState()
}

// collect takes in what was measured.
func (s *dispatcher) collect() error {
	came, err := s.writer.Collect()
	if err != nil {
		return err
	}
	for _, t := range came {
		s.done[t.ID] = true
		if h := s.byTrial[t.ID]; h != nil {
			h.results[t.ID] = true
		}
		if t.State == record.TrialOK {
			s.measured++
		} else {
			s.failed++
		}
		s.remote.ReportTrial(t, len(s.done))
		if err := s.checkMachine(t, time.Now()); err != nil {
			return err
		}
		if err := s.remote.RecordMachine(t); err != nil {
			return err
		}
	}
	if s.measured == 0 && s.failed >= maxFirstFailures && len(came) > 0 {
		return advice.With(fmt.Errorf(
			"%w: the first %d %w, the last one: %s", executor.ErrFatal, s.failed, runner.ErrTrials,
			came[len(came)-1].Error,
		),
			"mend the cause, then go on with: skerry run --resume %s", s.writer.Dir())
	}
	return nil
}

// updateTasks looks at every task that is with the engine.
func (s *dispatcher) updateTasks(found map[int]executor.Status) {
	for id, h := range s.open {
		status, known := found[id]
		if !known {
			status = executor.Status{State: executor.Lost, Reason: s.state.On + " does not know it any more"}
		}
		if status.Machine == "" {
			status.Machine = h.status.Machine
		}
		if status.State == executor.Running && (h.status.State != executor.Running || h.status.Machine != status.Machine) {
			h.since = time.Now()
		}
		h.status = status
		switch {
		case len(h.results) == len(h.task.Trials):
			s.health.recordEnd(h.status.Machine, true)
			s.untrackTask(h)
		case !status.State.Final():
			h.finalPolls = 0
		default:
			if h.finalPolls++; h.finalPolls >= resultGracePolls {
				s.handleMissing(h)
			}
		}
	}
	s.pruneSubmissions()
}

// handleMissing deals with a task that is over without all of its results.
func (s *dispatcher) handleMissing(h *submittedTask) {
	s.untrackTask(h)
	byItself := h.status.State == executor.Ended || h.status.State == executor.Failed
	if s.rerun && byItself {
		return // what it left was worth less than what stands
	}
	trouble := live.Trouble{
		Task: h.task.ID, State: string(h.status.State), Where: h.status.Machine, Why: h.status.Reason,
		At: time.Now(), Again: s.tries[h.task.ID] < maxTries,
	}
	if byItself {
		trouble.Why = s.lastOutput(h)
		s.health.recordEnd(h.status.Machine, false)
	}
	left := record.Task{
		ID:     h.task.ID,
		Trials: slices.DeleteFunc(slices.Clone(h.task.Trials), func(p record.Planned) bool { return h.results[p.ID] }),
	}
	what := "it is given up"
	if trouble.Again {
		what = "it is handed over again"
		s.queue = append(s.queue, left)
	} else {
		s.lost = append(s.lost, left.ID)
	}
	tasks := &s.state.Tasks
	tasks.Lost++
	tasks.Troubles = append(slices.Clone(tasks.Troubles[max(0, len(tasks.Troubles)-maxTroubles+1):]), trouble)
	s.Progress.Linef(
		"note: the task of trials %s is %s %s: %s; %s", formatTrials(left.IDs()), trouble.State,
		atMachine(trouble.Where), trouble.Why, what,
	)
}

// lastOutput is why a task ended by itself without its results, in its own words where they can be had.
func (s *dispatcher) lastOutput(h *submittedTask) string {
	if e, tells := s.executor.(executor.OutputReader); tells {
		for _, sub := range s.state.Open {
			if sub.Number == h.number {
				if last := e.LastOutput(s.dir, sub, h.task.ID); last != "" {
					return last
				}
			}
		}
	}
	if h.status.State == executor.Ended {
		return "it ended well, and its results cannot be seen in " + s.dir + " from here"
	}
	return h.status.Reason
}

// trackTask notes a task that is with the engine, drop that it is not any more.
func (s *dispatcher) trackTask(t record.Task, number int) {
	h := &submittedTask{task: t, number: number, status: executor.Status{State: executor.Waiting}, results: map[int]bool{}}
	s.open[t.ID] = h
	for _, p := range t.Trials {
		s.byTrial[p.ID] = h
	}
	s.tries[t.ID]++
	if _, earlier := s.firstSubmitted[t.ID]; !earlier {
		s.firstSubmitted[t.ID] = time.Now()
	}
}

func (s *dispatcher) untrackTask(h *submittedTask) {
	delete(s.open, h.task.ID)
	for _, p := range h.task.Trials {
		delete(s.byTrial, p.ID)
	}
}

// pruneSubmissions leaves out submissions of which nothing is left.
func (s *dispatcher) pruneSubmissions() {
	live := map[int]bool{}
	for _, h := range s.open {
		live[h.number] = true
	}
	s.state.Open = slices.DeleteFunc(s.state.Open, func(sub executor.Submission) bool { return !live[sub.Number] })
}

// How often the engine is asked: seldom enough that following costs share of a core, this
// process and the clients that it starts together, and not more often than every pollEvery.
const (
	pollEvery   = 2 * time.Second
	maxCPUShare = 0.008 // and less than 1 % with what the garbage collector does between steps
	maxPollWait = 5 * time.Minute
)

// pace tells how long to wait after a step, by what the step used. What an engine carries to and from
// machines meanwhile is work, and counts for nothing.
type pace struct {
	every time.Duration
	used  func() time.Duration
	begun time.Duration
	owed  time.Duration // of waits that were cut at pollAtMost
}

func newPace() *pace { return &pace{every: pollEvery, used: processorTime} }

// begin begins a step.
func (p *pace) begin() { p.begun = p.used() }

// next is how long to wait until what the step used is share of the time. What is longer than pollAtMost, since summary.json of a large
// run was written, is left to the waits that follow.
func (p *pace) next() time.Duration {
	p.owed += time.Duration(float64(p.used()-p.begun) / maxCPUShare)
	wait := min(max(p.every, p.owed), maxPollWait)
	p.owed = max(0, p.owed-wait)
	return wait
}

// processorTime is what this process and the children that have ended used.
func processorTime() (sum time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) == nil { // it fails for bad arguments alone
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}
