package sweep

import (
	"context"
	"errors"
	"io"

	"skerry/internal/run/engine"
	"skerry/internal/run/runner"
)

// Print writes what would be handed over to the engine for a new run. The run's directory is made, so
// that a person can submit that; what is measured is then taken in by Resume, which also
// hands over what the engine does not know.
func Print(ctx context.Context, c Config, to io.Writer) (dir string, err error) {
	s, err := newSweep(c)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.engine.Close()) }()
	if s.run, err = runner.Begin(c.Config); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.run.Writer().Close()) }()
	if err := s.begin(); err != nil {
		return s.dir, err
	}
	if s.limits, err = s.engine.Check(ctx); err != nil { // the engine may be elsewhere
		s.limits = engine.Limits{Batch: len(s.queue), Total: len(s.queue)}
	}
	for len(s.queue) > 0 {
		n := min(len(s.queue), s.limits.Batch)
		b, err := s.batch(s.queue[:n])
		ref := ""
		if err == nil {
			ref, err = s.engine.Print(to, b)
		}
		if err != nil {
			return s.dir, err
		}
		if ref != "" { // Resume will look for that
			s.state.Open = append(s.state.Open, b.As(ref, n))
		}
		s.queue = s.queue[n:]
		s.state.Next++
	}
	return s.dir, s.save()
}
