package dispatch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"skerry/internal/record"
	"skerry/internal/run/executor"
	"skerry/internal/run/live"
)

// How much onlookers are told of.
const (
	maxTasksAt  = 200
	maxTroubles = 50
)

// show tells people and onlookers how the tasks stand.
func (s *sweep) show() {
	now := live.Tasks{On: s.state.On, Waiting: len(s.queue), Lost: s.state.Tasks.Lost, Troubles: s.state.Tasks.Troubles, At: []live.TaskAt{}}
	for id, h := range s.open {
		if h.status.State != executor.Running {
			now.Waiting++
			continue
		}
		now.Running++
		now.At = append(now.At, live.TaskAt{Task: id, Trials: h.task.IDs(), Where: h.status.Where, Since: h.since})
	}
	slices.SortFunc(now.At, func(a, b live.TaskAt) int { return cmp.Compare(a.Task, b.Task) })
	now.At = now.At[:min(len(now.At), maxTasksAt)]
	if now.Troubles == nil {
		now.Troubles = []live.Trouble{}
	}
	for t := range s.writer.Trials {
		switch {
		case t.State == record.TrialFailed:
			now.Failed++
		case t.Verdict.State == record.Suspect:
			now.Suspect++
		}
	}
	plan := s.writer.Run().Plan
	now.Done = s.tasks - now.Waiting - now.Running - len(s.lost)
	if came := s.ok + s.bad; came > 0 && !s.again {
		now.LeftS = (time.Since(s.begun) / time.Duration(came) * time.Duration(len(plan)-len(s.done))).Round(time.Second).Seconds()
	}
	s.state.Tasks = now
	s.feed.Tasks(now)
	s.Progress.Livef("%s", Line(now, len(s.done), len(plan)))
}

// Line says in a line how tasks stand.
func Line(t live.Tasks, done, total int) string {
	parts := []string{fmt.Sprintf("%d of %d trials", done, total), fmt.Sprintf("tasks at %s: %d running, %d waiting", t.On, t.Running, t.Waiting)}
	if t.Suspect > 0 {
		parts = append(parts, fmt.Sprintf("%d suspect", t.Suspect))
	}
	if t.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", t.Failed))
	}
	if t.Lost > 0 {
		parts = append(parts, fmt.Sprintf("%d lost on the way", t.Lost))
	}
	if t.LeftS > 0 {
		parts = append(parts, (time.Duration(t.LeftS)*time.Second).String()+" left")
	}
	return strings.Join(parts, ", ")
}

// save writes the state where it has changed.
func (s *sweep) save() error {
	s.state.Changed = time.Time{}
	text, err := json.Marshal(s.state)
	if err != nil {
		return fmt.Errorf("noting what was handed over: %w", err)
	}
	if string(text) == s.saved {
		return nil
	}
	s.saved = string(text)
	return s.state.write(s.dir)
}
