package kubernetes

import (
	"context"
	"errors"
	"io"
	"os/exec"

	"skerry/internal/run/executor"
)

// taken is what was taken in of a pod: its log, and where results come by a store what is there.
type taken struct {
	over  bool // there is no more
	tries int
	said  string
	err   error
}

// mostTries are how often results are fetched from a store before their task counts as ended without them.
const mostTries = 20

// heard is how a task stands that has a pod: what has ended still runs until what it left was taken in.
func (e *Engine) heard(pod, job string, index int, status executor.Status) executor.Status {
	over := status.State.Over()
	switch {
	case status.State == executor.Waiting, e.store != nil && !over:
		return status
	case e.store == nil && status.State == executor.Lost: // its log went with its node
		return status
	}
	t := e.pods[pod]
	if t == nil {
		t = &taken{}
		e.pods[pod] = t
		e.take(t, pod, job, index, status.State)
	}
	switch {
	case !t.over && over:
		status.State = executor.Running
	case t.over && !over: // the connection broke
		delete(e.pods, pod)
	case t.over && t.err != nil && e.store != nil && t.tries < mostTries:
		status.State, status.Why = executor.Running, t.err.Error()
		t.over = false
		e.take(t, pod, job, index, executor.Lost) // its log was read
	}
	return status
}

// take begins to take in what a pod has left or, where that is its log, leaves.
func (e *Engine) take(t *taken, pod, job string, index int, state executor.State) {
	t.tries++
	e.taking.Go(func() {
		var said string
		var err error
		if state != executor.Lost {
			said, err = e.log(pod)
		}
		if e.store != nil {
			err = e.fetch(e.ctx, key(job, index))
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if said != "" {
			t.said = said
		}
		t.over, t.err = true, err
	})
}

// log takes results out of a pod's log as they come, until it ends, and returns the end of the rest.
func (e *Engine) log(pod string) (string, error) {
	cmd := exec.CommandContext(e.ctx, "kubectl", e.flags("logs", "--follow", pod)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", err
	}
	said, err := e.home.Receive(out)
	return said, errors.Join(err, cmd.Wait())
}

// fetch takes in what a task has left in the store, and removes it there. A task that left nothing has none.
func (e *Engine) fetch(ctx context.Context, key string) error {
	from, into := io.Pipe()
	got := make(chan error, 1)
	go func() {
		err := e.store.get(ctx, key, into)
		got <- errors.Join(err, into.CloseWithError(err))
	}()
	_, err := e.home.Receive(from)
	_ = from.CloseWithError(err) // ends a get that nobody reads
	gets := <-got
	if errors.Is(gets, errNothing) {
		return nil
	}
	if err = errors.Join(gets, err); err != nil {
		return err
	}
	return e.store.remove(ctx, key)
}
