package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"skerry/internal/base/atomicfile"
	"skerry/internal/record"
	"skerry/internal/run/executor"
	"skerry/internal/run/runner"
)

// submit hands over as much of the queue as the engine takes.
func (s *dispatcher) submit(ctx context.Context) error {
	for len(s.queue) > 0 && ctx.Err() == nil {
		n := min(len(s.queue), s.limits.Batch, s.limits.Total-len(s.open))
		if n <= 0 {
			return nil
		}
		b, err := s.newBatch(s.queue[:n])
		if err != nil {
			return err
		}
		sub, err := s.executor.Submit(ctx, b)
		if errors.Is(err, executor.ErrFull) {
			s.Progress.Livef("%v", err)
			return nil
		}
		if err != nil {
			return err
		}
		n = len(sub.Tasks)
		for _, t := range s.queue[:n] {
			s.trackTask(t, sub.Number)
		}
		s.queue = s.queue[n:]
		s.state.Open = append(s.state.Open, sub)
		s.state.Next++
		// At once: a sweep that dies here must not hand the same tasks over again. Were it killed
		// before this line, they would be done twice, and each trial still have one result.
		if err := s.saveState(); err != nil {
			return err
		}
	}
	return nil
}

// newBatch makes the next batch, with its task file.
func (s *dispatcher) newBatch(tasks []record.Task) (executor.Batch, error) {
	b := executor.Batch{
		Run: s.writer.Run().Name, Dir: s.dir, Number: s.state.Next, Rerun: s.rerun || s.Suspect, Token: s.state.Token,
		Exe: s.Exe, Cwd: s.cwd, StateDir: s.StateDir, Exclude: s.health.faulty(),
	}
	b.File = b.Path(".tasks")
	var lines bytes.Buffer
	for _, t := range tasks {
		b.Tasks = append(b.Tasks, executor.Task{ID: t.ID, Trials: t.IDs()})
		b.ExpectedTime = max(b.ExpectedTime, s.remote.ExpectedTime(t.Trials))
		fmt.Fprintln(&lines, formatTrials(t.IDs()))
	}
	b.MemoryBytes = s.largestMemory(tasks)
	if err := atomicfile.File(b.File, func(w io.Writer) error { _, err := lines.WriteTo(w); return err }); err != nil {
		return b, fmt.Errorf("writing the task file: %w", err)
	}
	return b, nil
}

// largestMemory is that of the largest lab, 0 where one has no limit.
func (s *dispatcher) largestMemory(tasks []record.Task) (most int64) {
	for _, t := range tasks {
		bytes := s.remote.MemoryBytes(t.Trials[0].ID)
		if bytes == 0 {
			return 0
		}
		most = max(most, bytes)
	}
	return most
}

// formatTrials writes trials as --only reads them.
func formatTrials(ids []int) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = strconv.Itoa(id)
	}
	return strings.Join(words, ",")
}

// Print writes what would be handed over to the engine for a new run, and leaves each batch of it in a file of the engine's folder. The
// run's directory is made, so that a person can edit and submit those; Resume then finds them, takes in what is
// measured, and hands over what nobody has submitted.
func Print(ctx context.Context, c Config, to io.Writer) (dir string, err error) {
	s, err := newDispatcher(c)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.executor.Close()) }()
	if s.remote, err = runner.CreateRemote(c.Config); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.remote.Writer().Close()) }()
	if err := s.prepare(); err != nil {
		return s.dir, err
	}
	if s.limits, err = s.executor.Check(ctx); err != nil { // the engine may be elsewhere
		s.limits = executor.Limits{Batch: len(s.queue), Total: len(s.queue)}
	}
	for len(s.queue) > 0 {
		n := min(len(s.queue), s.limits.Batch)
		b, err := s.newBatch(s.queue[:n])
		if err == nil {
			err = s.printBatch(to, b)
		}
		if err != nil {
			return s.dir, err
		}
		s.queue = s.queue[n:]
		s.state.Next++
	}
	return s.dir, s.saveState()
}

// printBatch writes a batch, also into its file, and notes by what it is found.
func (s *dispatcher) printBatch(to io.Writer, b executor.Batch) error {
	var text bytes.Buffer
	name, err := s.executor.Print(&text, b)
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.Path(executor.PrintedSuffix), text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("leaving what was printed in the run directory: %w", err)
	}
	if _, err := text.WriteTo(to); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if name != "" {
		sub := b.Submission(name, len(b.Tasks))
		sub.Printed = true
		s.state.Open = append(s.state.Open, sub)
	}
	return nil
}

// findPrinted asks for the batches that were printed: those that a person has submitted are with the engine from now on.
func (s *dispatcher) findPrinted(ctx context.Context) error {
	var open []executor.Submission
	for _, sub := range s.state.Open {
		if sub.Printed {
			name := sub.Ref
			ref, err := s.executor.Find(ctx, name)
			if err != nil {
				return err
			}
			if ref == "" {
				s.Progress.Linef(
					"note: nobody has submitted %s, or it ended long ago: what is left of its %d tasks is handed over now",
					name, len(sub.Tasks),
				)
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
