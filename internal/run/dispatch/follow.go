package dispatch

import (
	"context"
	"fmt"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/base/progress"
	"skerry/internal/record"
)

// Follow shows how the tasks of a run stand for as long as another process takes care of it. It
// tells whether there was one.
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
				p.Linef("note: task %d is %s %s: %s", t.Task, t.State, on(t.Where), t.Why)
				troubles = t.At
			}
		}
		if !seen {
			for _, t := range s.Tasks.At {
				p.Linef("task %d: trials %s %s since %s", t.Task, list(t.Trials), on(t.Where), t.Since.Format(time.TimeOnly))
			}
		}
		seen = true
		p.Livef("%s", Line(s.Tasks, len(d.Summary.Trials), len(d.Run.Plan)))
		if err := linger.For(ctx, max(pollEvery, 100*time.Since(begun))); err != nil {
			return seen, fmt.Errorf("following %s: %w", dir, err)
		}
	}
}
