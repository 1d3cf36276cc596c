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

// Executor is the machines of a file.
type Executor struct {
	file string
	home executor.RunDirectory

	ctx   context.Context // of what runs on machines; Close ends it
	stop  context.CancelFunc
	tasks sync.WaitGroup

	mu      sync.Mutex
	workers []*worker
	status  map[int]executor.Status
	outputs map[int]string
}

// worker is a machine.
type worker struct {
	inventory.Machine
	busy   bool
	failed int // tasks in a row that could not be begun
}

// failuresInARow take a machine out of use.
const failuresInARow = 3

// New returns the machines of a file.
func New(file string, home executor.RunDirectory) *Executor {
	e := &Executor{file: file, home: home, status: map[int]executor.Status{}, outputs: map[int]string{}}
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e
}

// Check finds the machines, and gives each the skerry program where it has not got it yet.
func (e *Executor) Check(ctx context.Context) (executor.Limits, error) {
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
		all.Go(func() { errs[i] = installProgram(ctx, m, exe) })
	}
	all.Wait()
	for i, m := range machines {
		if errs[i] == nil {
			e.workers = append(e.workers, &worker{Machine: m})
		}
	}
	if len(e.workers) == 0 {
		return executor.Limits{}, advice.With(fmt.Errorf(
			"%w: none of the machines of %s can be used: %w", executor.ErrUnavailable, e.file, errors.Join(errs...),
		),
			"try the way there by hand, such as: ssh HOST true")
	}
	return executor.Limits{Batch: len(e.workers), Total: len(e.workers), Warning: errors.Join(errs...)}, nil
}

// Submit begins tasks on machines that are free: the first ones of the batch where those are fewer.
func (e *Executor) Submit(_ context.Context, b executor.Batch) (executor.Submission, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	free := e.freeWorkers(b.Exclude)
	if len(free) == 0 && !slices.ContainsFunc(e.workers, func(p *worker) bool { return p.busy }) {
		free = e.freeWorkers(nil) // a machine to avoid is better than to wait for ever
	}
	if len(free) == 0 {
		return executor.Submission{}, executor.ErrFull
	}
	n := min(len(free), len(b.Tasks))
	for i, t := range b.Tasks[:n] {
		p := free[i]
		p.busy = true
		e.status[t.ID] = executor.Status{State: executor.Running, Machine: p.Name}
		e.tasks.Go(func() { e.runTask(p, t, b.Rerun) })
	}
	return b.Submission(e.file, n), nil
}

func (e *Executor) freeWorkers(avoid []string) (freeWorkers []*worker) {
	for _, p := range e.workers {
		if !p.busy && p.failed < failuresInARow && !slices.Contains(avoid, p.Name) {
			freeWorkers = append(freeWorkers, p)
		}
	}
	return freeWorkers
}

// runTask has one task done, and takes in its results.
func (e *Executor) runTask(p *worker, t executor.Task, again bool) {
	state, said, err := e.execTask(p, t, again)
	e.mu.Lock()
	defer e.mu.Unlock()
	p.busy = false
	status := executor.Status{State: state, Machine: p.Name, Reason: "its program ended well"}
	if err != nil {
		status.Reason = err.Error()
	}
	if state == executor.Lost {
		p.failed++
	} else {
		p.failed = 0
	}
	e.status[t.ID], e.outputs[t.ID] = status, lastLine(said)
}

// Poll tells of the tasks of this process; those of an earlier one ended with it.
func (e *Executor) Poll(_ context.Context, of []executor.Submission) (map[int]executor.Status, error) {
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
	for _, p := range e.workers {
		if p.busy || p.failed < failuresInARow {
			return found, nil
		}
	}
	return nil, fmt.Errorf("%w: no machine of %s can be reached any more", executor.ErrFatal, e.file)
}

// Cancel ends all tasks.
func (e *Executor) Cancel(context.Context, []executor.Submission) error { return e.Close() }

// LastOutput is the last line of what a task's program said.
func (e *Executor) LastOutput(_ string, _ executor.Submission, task int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.outputs[task]
}

// Print writes what would be run where.
func (e *Executor) Print(w io.Writer, b executor.Batch) (string, error) {
	for _, t := range b.Tasks {
		if _, err := fmt.Fprintf(w, "%s\n", taskLine("skerry", false, t, b.Rerun)); err != nil {
			return "", err
		}
	}
	return "", nil
}

// Find implements engine.Engine: what was printed is run by hand, and this engine does not see that.
func (e *Executor) Find(context.Context, string) (string, error) { return "", nil }

// Close ends what runs on machines, and waits for it.
func (e *Executor) Close() error {
	e.stop()
	e.tasks.Wait()
	return nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
