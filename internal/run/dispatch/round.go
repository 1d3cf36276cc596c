package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
	grace = 3
	// hopeless is how many trials may fail before one has measured: then the others will fail, too.
	hopeless = 3
)

// round goes on until nothing is with the engine and nothing is left to be handed over, or ctx ends.
func (s *sweep) round(ctx context.Context) error {
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
func (s *sweep) step(ctx context.Context) error {
	found, asked := s.engine.Poll(ctx, s.state.Open)
	if errors.Is(asked, executor.ErrHopeless) {
		return asked
	}
	if err := s.collect(); err != nil {
		return err
	}
	if asked == nil {
		s.judge(found)
	} else if ctx.Err() == nil {
		s.Progress.Livef("%v; asking again", asked)
	}
	if err := s.submit(ctx); err != nil {
		return err
	}
	s.show()
	return s.save()
}

// collect takes in what was measured.
func (s *sweep) collect() error {
	came, err := s.writer.Collect()
	if err != nil {
		return err
	}
	for _, t := range came {
		s.done[t.ID] = true
		if h := s.of[t.ID]; h != nil {
			h.got[t.ID] = true
		}
		if t.State == record.TrialOK {
			s.ok++
		} else {
			s.bad++
		}
		s.run.Tell(t, len(s.done))
		if err := s.odd(t, time.Now()); err != nil {
			return err
		}
		if err := s.run.Place(t); err != nil {
			return err
		}
	}
	if s.ok == 0 && s.bad >= hopeless && len(came) > 0 {
		return advice.With(fmt.Errorf("%w: the first %d %w, the last one: %s", executor.ErrHopeless, s.bad, runner.ErrTrials, came[len(came)-1].Error),
			"mend the cause, then go on with: skerry run --resume %s", s.writer.Dir())
	}
	return nil
}

// judge looks at every task that is with the engine.
func (s *sweep) judge(found map[int]executor.Status) {
	for id, h := range s.open {
		status, known := found[id]
		if !known {
			status = executor.Status{State: executor.Lost, Why: s.state.On + " does not know it any more"}
		}
		if status.Where == "" {
			status.Where = h.status.Where
		}
		if status.State == executor.Running && (h.status.State != executor.Running || h.status.Where != status.Where) {
			h.since = time.Now()
		}
		h.status = status
		switch {
		case len(h.got) == len(h.task.Trials):
			s.barren.ended(h.status.Where, true)
			s.drop(h)
		case !status.State.Over():
			h.over = 0
		default:
			if h.over++; h.over >= grace {
				s.missed(h)
			}
		}
	}
	s.forget()
}

// missed deals with a task that is over without all of its results.
func (s *sweep) missed(h *handedOver) {
	s.drop(h)
	byItself := h.status.State == executor.Ended || h.status.State == executor.Failed
	if s.again && byItself {
		return // what it left was worth less than what stands
	}
	trouble := live.Trouble{Task: h.task.ID, State: string(h.status.State), Where: h.status.Where, Why: h.status.Why, At: time.Now(), Again: s.tries[h.task.ID] < maxTries}
	if byItself {
		trouble.Why = s.said(h)
		s.barren.ended(h.status.Where, false)
	}
	left := record.Task{ID: h.task.ID, Trials: slices.DeleteFunc(slices.Clone(h.task.Trials), func(p record.Planned) bool { return h.got[p.ID] })}
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
	s.Progress.Linef("note: the task of trials %s is %s %s: %s; %s", list(left.IDs()), trouble.State, on(trouble.Where), trouble.Why, what)
}

// said is why a task ended by itself without its results, in its own words where they can be had.
func (s *sweep) said(h *handedOver) string {
	if e, tells := s.engine.(executor.Teller); tells {
		for _, sub := range s.state.Open {
			if sub.Number == h.number {
				if last := e.Said(s.dir, sub, h.task.ID); last != "" {
					return last
				}
			}
		}
	}
	if h.status.State == executor.Ended {
		return "it ended well, and its results cannot be seen in " + s.dir + " from here"
	}
	return h.status.Why
}

// hand notes a task that is with the engine, drop that it is not any more.
func (s *sweep) hand(t record.Task, number int) {
	h := &handedOver{task: t, number: number, status: executor.Status{State: executor.Waiting}, got: map[int]bool{}}
	s.open[t.ID] = h
	for _, p := range t.Trials {
		s.of[p.ID] = h
	}
	s.tries[t.ID]++
	if _, earlier := s.handed[t.ID]; !earlier {
		s.handed[t.ID] = time.Now()
	}
}

func (s *sweep) drop(h *handedOver) {
	delete(s.open, h.task.ID)
	for _, p := range h.task.Trials {
		delete(s.of, p.ID)
	}
}

// forget leaves out submissions of which nothing is left.
func (s *sweep) forget() {
	live := map[int]bool{}
	for _, h := range s.open {
		live[h.number] = true
	}
	s.state.Open = slices.DeleteFunc(s.state.Open, func(sub executor.Submission) bool { return !live[sub.Number] })
}
