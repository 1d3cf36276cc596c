package dbbench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"skerry/internal/bench/agent"
	"skerry/internal/database"
	"skerry/internal/database/churn"
	"skerry/internal/load"
	"skerry/internal/machine/host"
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

// Failure implements agent.Answer.
func (a answer) Failure() string { return a.Error }

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
	db, err := database.Choose(databases, j.Database)
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

func startAgent(ctx context.Context, node host.Host, exe string, j job) (*agent.Agent[answer], error) {
	return agent.Start[answer](ctx, node, exe, []string{"agent", "bench"}, nil, j)
}
