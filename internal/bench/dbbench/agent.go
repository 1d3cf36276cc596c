package dbbench

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

	"skerry/internal/database"
	"skerry/internal/database/churn"
	"skerry/internal/host"
	"skerry/internal/load"
)

// Jobs of an agent.
const (
	jobCost  = "cost"
	jobWrite = "write" // until it is told to check
)

// job is the line that an agent begins with; a second one, with Properties, has an agent
// that writes stop and check its rows.
type job struct {
	Kind       string            `json:"kind,omitempty"`
	Database   string            `json:"database,omitempty"`
	Properties map[string]string `json:"properties"`
	Writers    int               `json:"writers,omitempty"`
	Rate       float64           `json:"rate,omitempty"` // writes a second
}

// answer is what an agent prints.
type answer struct {
	Cost    *Cost          `json:"cost,omitempty"`
	Account *churn.Account `json:"account,omitempty"`
	Error   string         `json:"error,omitempty"`
}

// ErrAgent is an agent that ended without an answer.
var ErrAgent = errors.New("the benchmark's agent failed")

// Serve is the agent: it does what a job on in asks for and prints the answer.
func Serve(ctx context.Context, in io.Reader, out io.Writer, databases map[string]database.Database) error {
	a, err := serve(ctx, json.NewDecoder(bufio.NewReader(in)), databases)
	if err != nil {
		a = answer{Error: err.Error()}
	}
	return json.NewEncoder(out).Encode(a)
}

func serve(ctx context.Context, in *json.Decoder, databases map[string]database.Database) (answer, error) {
	var j job
	if err := in.Decode(&j); err != nil {
		return answer{}, fmt.Errorf("reading the job: %w", err)
	}
	db, err := database.Choose(databases, j.Database, "")
	if err != nil {
		return answer{}, err
	}
	if j.Kind == jobCost {
		c, err := measureCost(ctx, db, j.Properties)
		return answer{Cost: &c}, err
	}
	ledger := churn.NewLedger("bench")
	open := func(properties map[string]string) load.Open {
		return func(ctx context.Context) (load.Client, error) { return db.Open(ctx, properties) }
	}
	stop, err := churn.Write(ctx, ledger, open(j.Properties), j.Writers, j.Rate)
	if err != nil {
		return answer{}, err
	}
	var now job
	err = in.Decode(&now)
	if err := errors.Join(err, stop()); err != nil {
		return answer{}, fmt.Errorf("writing: %w", err)
	}
	account, err := ledger.Check(ctx, open(now.Properties), j.Writers)
	return answer{Account: &account}, err
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
		Name: "bench", Path: exe, Args: []string{"agent", "bench"}, Stdin: childIn, Stdout: a.out, Log: filepath.Join(node.Dir(), "bench.log"),
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

// check has the agent stop and check its rows.
func (a *agent) check(ctx context.Context, properties map[string]string) (answer, error) {
	if err := json.NewEncoder(a.in).Encode(job{Properties: properties}); err != nil {
		return answer{}, errors.Join(fmt.Errorf("%w: %w: %s", ErrAgent, err, a.process.Tail(5)), a.kill())
	}
	return a.wait(ctx)
}

// wait returns the agent's answer.
func (a *agent) wait(ctx context.Context) (answer, error) {
	select {
	case <-a.process.Done():
	case <-ctx.Done():
		return answer{}, errors.Join(context.Cause(ctx), a.kill())
	}
	var got answer
	if err := errors.Join(a.process.Err(), json.Unmarshal(a.out.Bytes(), &got), a.in.Close()); err != nil {
		return got, fmt.Errorf("%w: %w: %s", ErrAgent, err, a.process.Tail(5))
	}
	if got.Error != "" {
		return got, fmt.Errorf("%w: %s", ErrAgent, got.Error)
	}
	return got, nil
}

func (a *agent) kill() error { return errors.Join(a.in.Close(), a.process.Kill()) }
