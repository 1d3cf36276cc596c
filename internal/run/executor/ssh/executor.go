// Package ssh runs tasks on the machines of a machines file, one at a time on each. It needs neither a
// queue nor a daemon: a task ends with its connection.
package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"skerry/internal/base/advice"
	"skerry/internal/machine/inventory"
	"skerry/internal/run/executor"
)

// Executor runs tasks over ssh.
type Executor struct {
	file string
	home executor.RunDirectory

	ctx   context.Context // of running tasks; Close cancels it
	stop  context.CancelFunc
	tasks sync.WaitGroup

	mu      sync.Mutex
	workers []*worker
	status  map[int]executor.Status
	outputs map[int]string
}

type worker struct {
	inventory.Entry
	busy   bool
	failed int // consecutive tasks that did not start
}

// failuresInARow is the number of connection failures that take a machine out of use.
const failuresInARow = 3

func New(file string, home executor.RunDirectory) *Executor {
	e := &Executor{file: file, home: home, status: map[int]executor.Status{}, outputs: map[int]string{}}
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e
}

// Check connects to the machines, and installs the skerry program where it is missing.
func (e *Executor) Check(ctx context.Context) (executor.Capacity, error) {
	file, err := inventory.Load(e.file)
	if err != nil {
		return executor.Capacity{}, err
	}
	machines, err := file.Expand(ctx)
	if err != nil {
		return executor.Capacity{}, err
	}
	exe, err := os.Executable()
	if err != nil {
		return executor.Capacity{}, fmt.Errorf("locate this program: %w", err)
	}
	errs := make([]error, len(machines))
	var all sync.WaitGroup
	for i, m := range machines {
		all.Go(func() { errs[i] = installProgram(ctx, m, exe) })
	}
	all.Wait()
	for i, m := range machines {
		if errs[i] == nil {
			e.workers = append(e.workers, &worker{Entry: m})
		}
	}
	if len(e.workers) == 0 {
		return executor.Capacity{}, advice.With(fmt.Errorf(
			"%w: no usable machine in %s: %w", executor.ErrUnavailable, e.file, errors.Join(errs...),
		),
			"check the connection: ssh HOST true")
	}
	return executor.Capacity{Batch: len(e.workers), Total: len(e.workers), Warning: errors.Join(errs...)}, nil
}

// Submit starts tasks on free machines, at most one each.
func (e *Executor) Submit(_ context.Context, b executor.Batch) (executor.Submission, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	free := e.freeWorkers(b.Exclude)
	if len(free) == 0 && !slices.ContainsFunc(e.workers, func(p *worker) bool { return p.busy }) {
		free = e.freeWorkers(nil) // better an excluded machine than none
	}
	if len(free) == 0 {
		return executor.Submission{}, executor.ErrFull
	}
	n := min(len(free), len(b.Tasks))
	for i, t := range b.Tasks[:n] {
		p := free[i]
		p.busy = true
		e.status[t.ID] = executor.Status{State: executor.Running, Machine: p.Name}
		e.tasks.Go(func() { e.runTask(p, t, b) })
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

func (e *Executor) runTask(p *worker, t executor.Task, b executor.Batch) {
	state, output, err := e.execTask(p, t, b)
	e.mu.Lock()
	defer e.mu.Unlock()
	p.busy = false
	status := executor.Status{State: state, Machine: p.Name, Reason: "its program exited normally"}
	if err != nil {
		status.Reason = err.Error()
	}
	if state == executor.Lost {
		p.failed++
	} else {
		p.failed = 0
	}
	e.status[t.ID], e.outputs[t.ID] = status, executor.LastLine(output)
}

// Poll returns the status of this process's tasks; those of an earlier process ended with it.
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
	return nil, fmt.Errorf("%w: all machines of %s are unreachable", executor.ErrFatal, e.file)
}

func (e *Executor) Cancel(context.Context, []executor.Submission) error { return e.Close() }

func (e *Executor) LastOutput(_ string, _ executor.Submission, task int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.outputs[task]
}

// Print writes the command of each task.
func (e *Executor) Print(w io.Writer, b executor.Batch) (string, error) {
	for _, t := range b.Tasks {
		if _, err := fmt.Fprintf(w, "%s\n", taskLine("skerry", false, t, b)); err != nil {
			return "", err
		}
	}
	return "", nil
}

// Find never finds a printed batch: its commands run without this executor.
func (e *Executor) Find(context.Context, string) (string, error) { return "", nil }

func (e *Executor) Close() error {
	e.stop()
	e.tasks.Wait()
	return nil
}
