package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"skerry/internal/base/atomicfile"
	"skerry/internal/record"
	"skerry/internal/run/executor"
	"skerry/internal/run/runner"
)

// submit submits as much of the queue as the executor accepts.
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
		// Save at once, so that a process that dies here does not submit the same tasks again. If it is
		// killed before, the tasks run twice, and each trial still has one result.
		if err := s.saveState(); err != nil {
			return err
		}
	}
	return nil
}

func (s *dispatcher) newBatch(tasks []record.Task) (executor.Batch, error) {
	b := executor.Batch{
		Run: s.writer.Run().Name, Dir: s.dir, Number: s.state.Next, Rerun: s.rerun || s.Suspect,
		NoLab: !s.Experiment.NeedsLab(), Token: s.state.Token, Exe: s.Exe, Cwd: s.cwd, StateDir: s.StateDir, Exclude: s.health.faulty(),
	}
	b.File = b.Path(".tasks")
	var lines bytes.Buffer
	for _, t := range tasks {
		b.Tasks = append(b.Tasks, executor.Task{ID: t.ID, Trials: t.IDs()})
		b.ExpectedTime = max(b.ExpectedTime, s.remote.ExpectedTime(t.Trials))
		fmt.Fprintln(&lines, executor.FormatTrials(t.IDs()))
	}
	b.MemoryBytes = s.largestMemory(tasks)
	if err := atomicfile.Write(b.File, func(w io.Writer) error { _, err := lines.WriteTo(w); return err }); err != nil {
		return b, fmt.Errorf("write task file: %w", err)
	}
	return b, nil
}

// largestMemory returns the memory of the largest lab, 0 if any has no limit.
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

// Print writes the batches that a new run would submit, also into files of the executor's folder. It
// creates the run directory, so that a user can edit and submit the batches. Resume then finds them,
// collects their results and submits the rest.
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
	if s.limits, err = s.executor.Check(ctx); err != nil { // it may be on another machine
		s.limits = executor.Capacity{Batch: len(s.queue), Total: len(s.queue)}
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

// printBatch writes a batch, and remembers the name for findPrinted.
func (s *dispatcher) printBatch(to io.Writer, b executor.Batch) error {
	var text bytes.Buffer
	name, err := s.executor.Print(&text, b)
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.Path(executor.PrintedSuffix), text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("save printed batch: %w", err)
	}
	if _, err := text.WriteTo(to); err != nil {
		return fmt.Errorf("print batch: %w", err)
	}
	if name != "" {
		sub := b.Submission(name, len(b.Tasks))
		sub.Printed = true
		s.state.Open = append(s.state.Open, sub)
	}
	return nil
}

// findPrinted looks up printed batches. Those that a user has submitted are tracked from now on.
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
				s.Progress.Linef("note: %s was not submitted or ended long ago; submitting the rest of its %s", name,
					runner.CountNoun(len(sub.Tasks), "task"))
				continue
			}
			s.Progress.Linef("note: following %s at %s", name, s.state.On)
			sub.Ref, sub.Printed = ref, false
		}
		open = append(open, sub)
	}
	s.state.Open = open
	return nil
}
