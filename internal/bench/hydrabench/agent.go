package hydrabench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"skerry/internal/host"
)

// ErrAgent is an agent that ended without an answer.
var ErrAgent = errors.New("the benchmark's agent failed")

// Systems under test.
const (
	systemHydra  = "hydra"
	systemDirect = "direct"
	systemEtcd   = "etcd"
)

// Operations.
const (
	opWrite = "write"
	opRead  = "read" // of this cloud's database
	opMix   = "mix"  // half the workers read, half write
	opWatch = "watch"
	opFill  = "fill"
)

// job is the line that an agent begins with. One that watches, and one without seconds,
// goes on until its input ends.
type job struct {
	System    string   `json:"system"`
	Op        string   `json:"op"`
	Endpoints []string `json:"endpoints,omitempty"`
	Workers   int      `json:"workers"`
	Seconds   float64  `json:"seconds"`
	Keys      int      `json:"keys"`
	Payload   int      `json:"payload"` // bytes of a value
	// DNS and Zone, when set, are how the load balancers are found.
	DNS  string `json:"dns,omitempty"`
	Zone string `json:"zone,omitempty"`
}

// answer is what an agent prints.
type answer struct {
	Load  Load   `json:"load"`
	Seen  []try  `json:"seen,omitempty"`
	Error string `json:"error,omitempty"`
}

// try is one write of a watcher: Unix times in ns.
type try struct {
	Begin int64 `json:"b"`
	End   int64 `json:"e"`
	OK    bool  `json:"ok"`
}

// Serve is the agent: it does what the job on in asks for and prints the answer.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	var j job
	line, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &j)
	}
	var a answer
	if err == nil {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if j.Seconds == 0 {
			go func() {
				_, _ = io.Copy(io.Discard, lines) // its end is what it is read for
				cancel()
			}()
		}
		a, err = perform(ctx, j)
	}
	if err != nil {
		a = answer{Error: err.Error()}
	}
	return json.NewEncoder(out).Encode(a)
}

// agent is one at work on a node.
type agent struct {
	process host.Process
	in      *os.File
	out     *bytes.Buffer
}

func startAgent(ctx context.Context, node host.Host, exe string, j job) (*agent, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	a := &agent{in: in, out: &bytes.Buffer{}}
	a.process, err = node.Start(ctx, host.Command{
		Name: "bench", Path: exe, Args: []string{"agent", "hydra"}, Env: []string{"GOGC=400"}, Stdin: childIn, Stdout: a.out, Log: filepath.Join(node.Dir(), "bench.log"),
	})
	childIn.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the benchmark's agent on %s: %w", node.Name(), err), in.Close())
	}
	if err := json.NewEncoder(in).Encode(j); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrAgent, err), a.kill())
	}
	return a, nil
}

// end has the agent stop, and wait returns its answer.
func (a *agent) end(ctx context.Context) (answer, error) {
	closed := a.in.Close()
	got, err := a.wait(ctx)
	return got, errors.Join(err, closed)
}

func (a *agent) wait(ctx context.Context) (answer, error) {
	select {
	case <-a.process.Done():
	case <-ctx.Done():
		return answer{}, errors.Join(context.Cause(ctx), a.kill())
	}
	var got answer
	if err := errors.Join(a.process.Err(), json.Unmarshal(a.out.Bytes(), &got)); err != nil {
		return got, fmt.Errorf("%w: %w: %s", ErrAgent, err, a.process.Tail(5))
	}
	if got.Error != "" {
		return got, fmt.Errorf("%w: %s", ErrAgent, got.Error)
	}
	return got, nil
}

func (a *agent) kill() error {
	_ = a.in.Close() // it may be closed
	return a.process.Kill()
}
