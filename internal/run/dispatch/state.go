package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/atomicfile"
	"skerry/internal/base/linger"
	"skerry/internal/base/progress"
	"skerry/internal/record"
	"skerry/internal/run/executor"
	"skerry/internal/run/live"
)

const stateSchema = "skerry/engine/v1"

// State is engine/state.json: unfinished submissions. Only the run's controller writes it; a resuming
// process reads it.
type State struct {
	Schema string `json:"schema"`
	// On and Options are the executor's configuration.
	On      string  `json:"on"`
	Options Options `json:"options,omitzero"`
	Token   string  `json:"token"`
	// Next is the number of the next submission.
	Next int                   `json:"next"`
	Open []executor.Submission `json:"open"`
	// Tasks is the live state of the tasks.
	Tasks   live.Tasks `json:"tasks"`
	Changed time.Time  `json:"changed"`
}

// ErrNoExecutor means that a run does not use an executor.
var ErrNoExecutor = errors.New("the run was not started on an engine")

func statePath(dir string) string { return filepath.Join(dir, executor.Folder, "state.json") }

// ReadState reads engine/state.json. The error is ErrNoExecutor if there is none.
func ReadState(dir string) (State, error) {
	var s State
	text, err := os.ReadFile(statePath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return s, ErrNoExecutor
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil && s.Schema != stateSchema {
		err = fmt.Errorf("schema is %q, want %q", s.Schema, stateSchema)
	}
	if err != nil {
		return s, fmt.Errorf("read engine state: %w", err)
	}
	return s, nil
}

func (s *State) write(dir string) error {
	s.Changed = time.Now()
	err := atomicfile.Write(statePath(dir), func(w io.Writer) error { return json.NewEncoder(w).Encode(s) })
	if err != nil {
		return fmt.Errorf("write engine state: %w", err)
	}
	return nil
}

const (
	maxTasksAt  = 200
	maxTroubles = 50
)

func (s *dispatcher) publishTasks() {
	now := live.Tasks{On: s.state.On, Waiting: len(s.queue), Lost: s.state.Tasks.Lost, Troubles: s.state.Tasks.Troubles, At: []live.TaskAt{}}
	for id, h := range s.open {
		if h.status.State != executor.Running {
			now.Waiting++
			continue
		}
		now.Running++
		now.At = append(now.At, live.TaskAt{Task: id, Trials: h.task.IDs(), Where: h.status.Machine, Since: h.since})
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
	if came := s.measured + s.failed; came > 0 && !s.rerun {
		now.LeftS = (time.Since(s.begun) / time.Duration(came) * time.Duration(len(plan)-len(s.done))).Round(time.Second).Seconds()
	}
	s.state.Tasks = now
	s.feed.SetTasks(now)
	s.Progress.Livef("%s", FormatTasks(now, len(s.done), len(plan)))
}

// FormatTasks returns a progress line.
func FormatTasks(t live.Tasks, done, total int) string {
	parts := []string{
		fmt.Sprintf("%d of %d trials", done, total),
		fmt.Sprintf("tasks at %s: %d running, %d waiting", t.On, t.Running, t.Waiting),
	}
	if t.Suspect > 0 {
		parts = append(parts, fmt.Sprintf("%d suspect", t.Suspect))
	}
	if t.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", t.Failed))
	}
	if t.Lost > 0 {
		parts = append(parts, fmt.Sprintf("%d resubmitted or given up", t.Lost))
	}
	if t.LeftS > 0 {
		parts = append(parts, (time.Duration(t.LeftS)*time.Second).String()+" left")
	}
	return strings.Join(parts, ", ")
}

// saveState writes the state if it has changed.
func (s *dispatcher) saveState() error {
	s.state.Changed = time.Time{}
	text, err := json.Marshal(s.state)
	if err != nil {
		return fmt.Errorf("write engine state: %w", err)
	}
	if string(text) == s.saved {
		return nil
	}
	s.saved = string(text)
	return s.state.write(s.dir)
}

// Follow shows the progress of a run while another process controls it. It returns whether there was one.
func Follow(ctx context.Context, dir string, p *progress.Reporter) (bool, error) {
	defer p.Done()
	seen, troubles := false, time.Time{}
	for {
		d, err := record.Open(dir)
		if err != nil {
			return seen, err
		}
		if !d.Running {
			return seen, nil
		}
		begun := time.Now()
		s, err := ReadState(dir)
		if err != nil {
			return seen, err
		}
		for _, t := range s.Tasks.Troubles {
			if t.At.After(troubles) {
				p.Linef("note: task %d %s %s: %s", t.Task, t.State, atMachine(t.Where), t.Why)
				troubles = t.At
			}
		}
		if !seen {
			for _, t := range s.Tasks.At {
				p.Linef("task %d: trials %s %s since %s", t.Task, executor.FormatTrials(t.Trials), atMachine(t.Where), t.Since.Format(time.TimeOnly))
			}
		}
		seen = true
		p.Livef("%s", FormatTasks(s.Tasks, len(d.Summary.Trials), len(d.Run.Plan)))
		if err := linger.For(ctx, max(pollEvery, 100*time.Since(begun))); err != nil {
			return seen, fmt.Errorf("follow %s: %w", dir, err)
		}
	}
}
