package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"skerry/internal/base/atomicfile"
	"skerry/internal/record"
	"skerry/internal/run/executor"
)

// submit hands over as much of the queue as the engine takes.
func (s *sweep) submit(ctx context.Context) error {
	for len(s.queue) > 0 && ctx.Err() == nil {
		n := min(len(s.queue), s.limits.Batch, s.limits.Total-len(s.open))
		if n <= 0 {
			return nil
		}
		b, err := s.batch(s.queue[:n])
		if err != nil {
			return err
		}
		sub, err := s.engine.Submit(ctx, b)
		if errors.Is(err, executor.ErrLater) {
			s.Progress.Livef("%v", err)
			return nil
		}
		if err != nil {
			return err
		}
		n = len(sub.Tasks)
		for _, t := range s.queue[:n] {
			s.hand(t, sub.Number)
		}
		s.queue = s.queue[n:]
		s.state.Open = append(s.state.Open, sub)
		s.state.Next++
		// At once: a sweep that dies here must not hand the same tasks over again. Were it killed
		// before this line, they would be done twice, and each trial still have one result.
		if err := s.save(); err != nil {
			return err
		}
	}
	return nil
}

// batch makes the next batch, with its task file.
func (s *sweep) batch(tasks []record.Task) (executor.Batch, error) {
	b := executor.Batch{
		Run: s.writer.Run().Name, Dir: s.dir, Number: s.state.Next, Again: s.again || s.Suspect, Token: s.state.Token,
		Exe: s.Exe, Cwd: s.cwd, StateDir: s.StateDir, Avoid: s.barren.nodes(),
	}
	b.File = b.Path(".tasks")
	var lines bytes.Buffer
	for _, t := range tasks {
		b.Tasks = append(b.Tasks, executor.Task{ID: t.ID, Trials: t.IDs()})
		b.Takes = max(b.Takes, s.run.Takes(t.Trials))
		fmt.Fprintln(&lines, list(t.IDs()))
	}
	b.MemoryBytes = s.memory(tasks)
	if err := atomicfile.File(b.File, func(w io.Writer) error { _, err := lines.WriteTo(w); return err }); err != nil {
		return b, fmt.Errorf("writing the task file: %w", err)
	}
	return b, nil
}

// memory is that of the largest lab, 0 where one has no limit.
func (s *sweep) memory(tasks []record.Task) (most int64) {
	for _, t := range tasks {
		bytes := s.run.MemoryBytes(t.Trials[0].ID)
		if bytes == 0 {
			return 0
		}
		most = max(most, bytes)
	}
	return most
}

// list writes trials as --only reads them.
func list(ids []int) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = strconv.Itoa(id)
	}
	return strings.Join(words, ",")
}
