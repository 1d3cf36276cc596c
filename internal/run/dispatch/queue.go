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
	// maxTries is how often a task is submitted before it is given up.
	maxTries = 3
	// resultGracePolls is the number of polls that must find a task final before its results count as
	// missing; network file systems show new names late.
	resultGracePolls = 3
	// maxFirstFailures is the number of trials that may fail before the first one succeeds; then the run
	// stops.
	maxFirstFailures = 3
)

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

// step polls the executor, collects results, updates the tasks and submits the next ones. Results are
// collected after the poll, so that a final task's results are visible.
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
		s.Progress.Livef("%v; retrying", asked)
	}
	if err := s.submit(ctx); err != nil {
		return err
	}
	s.publishTasks()
	return s.saveState()
}

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
		return advice.With(fmt.Errorf("%w: the first %d %w; the last error: %s", executor.ErrFatal, s.failed, runner.ErrTrials,
			came[len(came)-1].Error),
			"fix the cause, then resume with: skerry run --resume %s", s.writer.Dir())
	}
	return nil
}

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

// handleMissing resubmits or abandons a task that is final without all results.
func (s *dispatcher) handleMissing(h *submittedTask) {
	s.untrackTask(h)
	byItself := h.status.State == executor.Ended || h.status.State == executor.Failed
	if s.rerun && byItself {
		return // the existing result is better
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
	next := "giving up"
	if trouble.Again {
		next = "resubmitting"
		s.queue = append(s.queue, left)
	} else {
		s.lost = append(s.lost, left.ID)
	}
	tasks := &s.state.Tasks
	tasks.Lost++
	tasks.Troubles = append(slices.Clone(tasks.Troubles[max(0, len(tasks.Troubles)-maxTroubles+1):]), trouble)
	s.Progress.Linef("note: task with trials %s %s %s: %s; %s", executor.FormatTrials(left.IDs()), trouble.State,
		atMachine(trouble.Where), trouble.Why, next)
}

// lastOutput returns the reason why a task ended without results: its last output, if available.
func (s *dispatcher) lastOutput(h *submittedTask) string {
	if e, ok := s.executor.(executor.OutputReader); ok {
		for _, sub := range s.state.Open {
			if sub.Number == h.number {
				if last := e.LastOutput(s.dir, sub, h.task.ID); last != "" {
					return last
				}
			}
		}
	}
	if h.status.State == executor.Ended {
		return "exited normally, but its results are not visible in " + s.dir
	}
	return h.status.Reason
}

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

// pruneSubmissions removes submissions without open tasks.
func (s *dispatcher) pruneSubmissions() {
	live := map[int]bool{}
	for _, h := range s.open {
		live[h.number] = true
	}
	s.state.Open = slices.DeleteFunc(s.state.Open, func(sub executor.Submission) bool { return !live[sub.Number] })
}

// Polls are so rare that following a run costs a small share of one core, including client processes.
const (
	pollEvery   = 2 * time.Second
	maxCPUShare = 0.008 // below 1 % with garbage collection between steps
	maxPollWait = 5 * time.Minute
)

// pace computes the wait after a step from the CPU time that the step used. Transfers of executors between
// steps are work and do not count.
type pace struct {
	every time.Duration
	used  func() time.Duration
	begun time.Duration
	owed  time.Duration // of waits that were capped at maxPollWait
}

func newPace() *pace { return &pace{every: pollEvery, used: processorTime} }

func (p *pace) begin() { p.begun = p.used() }

// next returns how long to wait so that the step used maxCPUShare of the time. The excess over maxPollWait,
// such as after writing a large summary.json, is added to later waits.
func (p *pace) next() time.Duration {
	p.owed += time.Duration(float64(p.used()-p.begun) / maxCPUShare)
	wait := min(max(p.every, p.owed), maxPollWait)
	p.owed = max(0, p.owed-wait)
	return wait
}

// processorTime returns the CPU time of this process and its ended children.
func processorTime() (sum time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) == nil { // only fails for invalid arguments
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}
