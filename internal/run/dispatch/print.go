package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"skerry/internal/run/executor"
	"skerry/internal/run/runner"
)

// Print writes what would be handed over to the engine for a new run, and leaves each batch of it in a file of the engine's folder. The
// run's directory is made, so that a person can edit and submit those; Resume then finds them, takes in what is
// measured, and hands over what nobody has submitted.
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
		s.limits = executor.Limits{Batch: len(s.queue), Total: len(s.queue)}
	}
	for len(s.queue) > 0 {
		n := min(len(s.queue), s.limits.Batch)
		b, err := s.batch(s.queue[:n])
		if err == nil {
			err = s.print(to, b)
		}
		if err != nil {
			return s.dir, err
		}
		s.queue = s.queue[n:]
		s.state.Next++
	}
	return s.dir, s.save()
}

// print writes a batch, also into its file, and notes by what it is found.
func (s *sweep) print(to io.Writer, b executor.Batch) error {
	var text bytes.Buffer
	name, err := s.engine.Print(&text, b)
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.Path(executor.Printed), text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("leaving what was printed in the run directory: %w", err)
	}
	if _, err := text.WriteTo(to); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if name != "" {
		sub := b.As(name, len(b.Tasks))
		sub.Printed = true
		s.state.Open = append(s.state.Open, sub)
	}
	return nil
}

// find asks for the batches that were printed: those that a person has submitted are with the engine from now on.
func (s *sweep) find(ctx context.Context) error {
	var open []executor.Submission
	for _, sub := range s.state.Open {
		if sub.Printed {
			name := sub.Ref
			ref, err := s.engine.Find(ctx, name)
			if err != nil {
				return err
			}
			if ref == "" {
				s.Progress.Linef("note: nobody has submitted %s, or it ended long ago: what is left of its %d tasks is handed over now", name, len(sub.Tasks))
				continue
			}
			s.Progress.Linef("note: %s is found at %s and followed", name, s.state.On)
			sub.Ref, sub.Printed = ref, false
		}
		open = append(open, sub)
	}
	s.state.Open = open
	return nil
}
