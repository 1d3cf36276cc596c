// Package ssh has tasks done by the machines of a machines file, one at a time on each: for those who
// have SSH and nothing else. No queue and no daemon: a task ends with the connection that began it.
package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"skerry/internal/base/advice"
	"skerry/internal/machine/inventory"
	"skerry/internal/run/executor"
)

// Engine is the machines of a file.
type Engine struct {
	file string
	home executor.Home

	ctx   context.Context // of what runs on machines; Close ends it
	stop  context.CancelFunc
	tasks sync.WaitGroup

	mu     sync.Mutex
	places []*place
	status map[int]executor.Status
	said   map[int]string
}

// place is a machine.
type place struct {
	inventory.Machine
	busy   bool
	failed int // tasks in a row that could not be begun
}

// failuresInARow take a machine out of use.
const failuresInARow = 3

// New returns the machines of a file.
func New(file string, home executor.Home) *Engine {
	e := &Engine{file: file, home: home, status: map[int]executor.Status{}, said: map[int]string{}}
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e
}

// Check finds the machines, and gives each the skerry program where it has not got it yet.
func (e *Engine) Check(ctx context.Context) (executor.Limits, error) {
	file, err := inventory.Load(e.file)
	if err != nil {
		return executor.Limits{}, err
	}
	machines, err := file.Expand(ctx)
	if err != nil {
		return executor.Limits{}, err
	}
	exe, err := os.Executable()
	if err != nil {
		return executor.Limits{}, fmt.Errorf("finding this program: %w", err)
	}
	errs := make([]error, len(machines))
	var all sync.WaitGroup
	for i, m := range machines {
		all.Go(func() { errs[i] = furnish(ctx, m, exe) })
	}
	all.Wait()
	for i, m := range machines {
		if errs[i] == nil {
			e.places = append(e.places, &place{Machine: m})
		}
	}
	if len(e.places) == 0 {
		return executor.Limits{}, advice.With(fmt.Errorf("%w: none of the machines of %s can be used: %w", executor.ErrNoEngine, e.file, errors.Join(errs...)),
			"try the way there by hand, such as: ssh HOST true")
	}
	return executor.Limits{Batch: len(e.places), Total: len(e.places), Doubts: errors.Join(errs...)}, nil
}

// Submit begins tasks on machines that are free: the first ones of the batch where those are fewer.
func (e *Engine) Submit(_ context.Context, b executor.Batch) (executor.Submission, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	free := e.free(b.Avoid)
	if len(free) == 0 && !slices.ContainsFunc(e.places, func(p *place) bool { return p.busy }) {
		free = e.free(nil) // a machine to avoid is better than to wait for ever
	}
	if len(free) == 0 {
		return executor.Submission{}, executor.ErrLater
	}
	n := min(len(free), len(b.Tasks))
	for i, t := range b.Tasks[:n] {
		p := free[i]
		p.busy = true
		e.status[t.ID] = executor.Status{State: executor.Running, Where: p.Name}
		e.tasks.Go(func() { e.run(p, t, b.Again) })
	}
	return b.As(e.file, n), nil
}

func (e *Engine) free(avoid []string) (free []*place) {
	for _, p := range e.places {
		if !p.busy && p.failed < failuresInARow && !slices.Contains(avoid, p.Name) {
			free = append(free, p)
		}
	}
	return free
}

// run has one task done, and takes in its results.
func (e *Engine) run(p *place, t executor.Task, again bool) {
	state, said, err := e.work(p, t, again)
	e.mu.Lock()
	defer e.mu.Unlock()
	p.busy = false
	status := executor.Status{State: state, Where: p.Name, Why: "its program ended well"}
	if err != nil {
		status.Why = err.Error()
	}
	if state == executor.Lost {
		p.failed++
	} else {
		p.failed = 0
	}
	e.status[t.ID], e.said[t.ID] = status, lastLine(said)
}

// Poll tells of the tasks of this process; those of an earlier one ended with it.
func (e *Engine) Poll(_ context.Context, of []executor.Submission) (map[int]executor.Status, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := map[int]executor.Status{}
	for _, s := range of {
		for _, id := range s.Tasks {
			if status, known := e.status[id]; known {
				found[id] = status
			}
		}
	}
	for _, p := range e.places {
		if p.busy || p.failed < failuresInARow {
			return found, nil
		}
	}
	return nil, fmt.Errorf("%w: no machine of %s can be reached any more", executor.ErrHopeless, e.file)
}

// Cancel ends all tasks.
func (e *Engine) Cancel(context.Context, []executor.Submission) error { return e.Close() }

// Said is the last line of what a task's program said.
func (e *Engine) Said(_ string, _ executor.Submission, task int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.said[task]
}

// Print writes what would be run where.
func (e *Engine) Print(w io.Writer, b executor.Batch) (string, error) {
	for _, t := range b.Tasks {
		if _, err := fmt.Fprintf(w, "%s\n", taskLine("skerry", false, t, b.Again)); err != nil {
			return "", err
		}
	}
	return "", nil
}

// Find implements engine.Engine: what was printed is run by hand, and this engine does not see that.
func (e *Engine) Find(context.Context, string) (string, error) { return "", nil }

// Close ends what runs on machines, and waits for it.
func (e *Engine) Close() error {
	e.stop()
	e.tasks.Wait()
	return nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
