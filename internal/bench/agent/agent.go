// Package agent is a process that a benchmark has on a node: it reads its job as a line of
// JSON on its standard input, later perhaps another, and prints one answer as JSON.
package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"skerry/internal/machine/host"
)

// ErrAgent is an agent that ended without an answer.
var ErrAgent = errors.New("the benchmark's agent failed")

// Answer is what an agent prints.
type Answer interface {
	// Failure is why there is nothing else in it, "" where there is.
	Failure() string
}

// Agent is one at work on a node, which answers with an A.
type Agent[A Answer] struct {
	process host.Process
	in      *os.File
	out     bytes.Buffer
}

// lastLines are how many lines of an agent's log an error shows.
const lastLines = 5

// Start starts one: exe with args, and more in its environment.
func Start[A Answer](ctx context.Context, node host.Host, exe string, args, env []string, job any) (*Agent[A], error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the benchmark's agent on %s: %w", node.Name(), err)
	}
	a := &Agent[A]{in: in}
	a.process, err = node.Start(ctx, host.Command{
		Name: "bench", Path: exe, Args: args, Env: env, Stdin: childIn, Stdout: &a.out, Log: filepath.Join(node.Dir(), "bench.log"),
	})
	childIn.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the benchmark's agent on %s: %w", node.Name(), err), in.Close())
	}
	if err := a.Tell(job); err != nil {
		return nil, err
	}
	return a, nil
}

// Tell writes a line to its input. One that does not read it is killed.
func (a *Agent[A]) Tell(line any) error {
	if err := json.NewEncoder(a.in).Encode(line); err != nil {
		return errors.Join(fmt.Errorf("%w: %w: %s", ErrAgent, err, a.process.Tail(lastLines)), a.Kill())
	}
	return nil
}

// End closes its input, which has one that goes on until then end, and returns its answer.
func (a *Agent[A]) End(ctx context.Context) (A, error) {
	closed := a.in.Close()
	answer, err := a.Wait(ctx)
	return answer, errors.Join(err, closed)
}

// Wait returns its answer once it has ended. When nobody waits any more it is killed.
func (a *Agent[A]) Wait(ctx context.Context) (answer A, err error) {
	select {
	case <-a.process.Done():
	case <-ctx.Done():
		return answer, errors.Join(context.Cause(ctx), a.Kill())
	}
	_ = a.in.Close() // it may be closed
	if err := errors.Join(a.process.Err(), json.Unmarshal(a.out.Bytes(), &answer)); err != nil {
		return answer, fmt.Errorf("%w: %w: %s", ErrAgent, err, a.process.Tail(lastLines))
	}
	if why := answer.Failure(); why != "" {
		return answer, fmt.Errorf("%w: %s", ErrAgent, why)
	}
	return answer, nil
}

// Kill ends it without an answer.
func (a *Agent[A]) Kill() error {
	_ = a.in.Close() // it may be closed
	return a.process.Kill()
}
