package dbtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/machine/host"
)

// Sentinel errors.
var (
	// ErrLost means that acknowledged rows are missing or hold an older value.
	ErrLost = errors.New("acknowledged rows were lost")
	// ErrNoChange means that no node can join and none may leave.
	ErrNoChange = errors.New("no change of membership is possible")
)

// ChurnPlan describes a run.
type ChurnPlan struct {
	// Changes is the number of joins and leaves.
	Changes int
	// Seed is the seed of the random choice.
	Seed uint64
	// Nodes are the possible members. Members are the initial ones.
	Nodes   []host.Host
	Members []string
	// Least is the minimum number of members.
	Least int
	// Fixed maps nodes that cannot leave to the reason.
	Fixed map[string]string
	// Abrupt makes about every second leave abrupt.
	Abrupt bool
	// Writers is the number of writing clients. Rate is the total of writes per second.
	Writers int
	Rate    float64
	// Timeout bounds one change.
	Timeout time.Duration
	// Progress, if not nil, receives a line for each step.
	Progress func(string)
}

// ChurnStep is one change that was made.
type ChurnStep struct {
	Node     string        `json:"node"`
	Join     bool          `json:"join"`
	Abrupt   bool          `json:"abrupt,omitempty"`
	Accepted time.Duration `json:"accepted_ns"`
	Complete time.Duration `json:"complete_ns"`
}

// String describes the step in words.
func (s ChurnStep) String() string {
	verb := "leave of " + s.Node
	if s.Join {
		verb = "join of " + s.Node
	}
	if s.Abrupt {
		verb = "abrupt " + verb
	}
	return verb
}

// ChurnReport is the result of a run.
type ChurnReport struct {
	Seed  uint64      `json:"seed"`
	Steps []ChurnStep `json:"steps"`
	WriteCounts
}

// Run writes rows, changes the membership, and reads all rows back. The report covers the steps until an error,
// which wraps ErrLost for lost rows.
func RunChurn(ctx context.Context, c database.Cluster, open load.OpenClient, p ChurnPlan) (ChurnReport, error) {
	report := ChurnReport{Seed: p.Seed}
	ledger := NewLedger(fmt.Sprintf("c%d-", p.Seed%1000))
	stop, err := StartWriters(ctx, ledger, open, p.Writers, p.Rate)
	if err != nil {
		return report, err
	}
	if err = ledger.awaitFirst(ctx, p.Timeout); err == nil {
		report.Steps, err = p.Apply(ctx, c)
	}
	err = errors.Join(err, stop())
	account, checkErr := ledger.Check(ctx, open, p.Writers)
	report.WriteCounts = account
	return report, errors.Join(err, checkErr, account.Err())
}

// Apply makes the changes and returns the completed ones.
func (p ChurnPlan) Apply(ctx context.Context, c database.Cluster) ([]ChurnStep, error) {
	random := rand.New(rand.NewPCG(p.Seed, 0))
	members, fixed := slices.Clone(p.Members), make(map[string]bool)
	for name := range p.Fixed {
		fixed[name] = true
	}
	var steps []ChurnStep
	for len(steps) < p.Changes {
		step, node, err := p.choose(random, members, fixed)
		if err != nil {
			return steps, err
		}
		if p.Progress != nil {
			p.Progress(fmt.Sprintf("%d of %d: %v", len(steps)+1, p.Changes, step))
		}
		change, err := p.applyStep(ctx, c, step, node)
		if !step.Join && errors.Is(err, database.ErrFixed) {
			fixed[step.Node] = true // the database refused
			continue
		}
		if err != nil {
			return steps, fmt.Errorf("change %d of %d (seed %d), %v: %w", len(steps)+1, p.Changes, p.Seed, step, err)
		}
		step.Accepted, step.Complete = change.Accepted, change.Complete
		steps = append(steps, step)
		if step.Join {
			members = append(members, step.Node)
			clear(fixed) // with one more member, others may leave
			for name := range p.Fixed {
				fixed[name] = true
			}
		} else {
			members = slices.DeleteFunc(members, func(m string) bool { return m == step.Node })
		}
	}
	return steps, nil
}

func (p ChurnPlan) applyStep(ctx context.Context, c database.Cluster, s ChurnStep, node host.Host) (database.Change, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.Timeout, fmt.Errorf("not complete after %v", p.Timeout))
	defer cancel()
	if s.Join {
		return c.Join(ctx, node)
	}
	return c.Leave(ctx, node, database.Manner(s.Abrupt))
}

func (p ChurnPlan) choose(random *rand.Rand, members []string, fixed map[string]bool) (ChurnStep, host.Host, error) {
	var steps []ChurnStep
	var nodes []host.Host
	for _, n := range p.Nodes {
		is := slices.Contains(members, n.Name())
		if is && (len(members) <= p.Least || fixed[n.Name()]) {
			continue
		}
		steps = append(steps, ChurnStep{Node: n.Name(), Join: !is})
		nodes = append(nodes, n)
	}
	if len(steps) == 0 {
		return ChurnStep{}, nil, fmt.Errorf("%w: members %v", ErrNoChange, members)
	}
	i := random.IntN(len(steps))
	abrupt := random.IntN(2) == 0
	steps[i].Abrupt = abrupt && p.Abrupt && !steps[i].Join
	return steps[i], nodes[i], nil
}

// StartWriters starts writers and returns a function that stops them and returns errors of opening and closing
// clients. The ledger records errors of single writes.
func StartWriters(ctx context.Context, l *Ledger, open load.OpenClient, writers int, rate float64) (stop func() error, err error) {
	clients := make([]load.Client, 0, writers)
	for range writers {
		c, err := open(ctx)
		if err != nil {
			for _, c := range clients {
				err = errors.Join(err, c.Close())
			}
			return nil, fmt.Errorf("opening a client for writes: %w", err)
		}
		clients = append(clients, c)
	}
	done := make(chan struct{})
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() {
			tick := time.NewTicker(time.Duration(float64(writers) / rate * float64(time.Second)))
			defer tick.Stop()
			for n := i; ; n += writers {
				select {
				case <-done:
					return
				case <-ctx.Done():
					return
				case <-tick.C:
					_ = l.Write(ctx, c, n) // the ledger records the error
				}
			}
		})
	}
	return func() error {
		close(done)
		all.Wait()
		var errs []error
		for _, c := range clients {
			errs = append(errs, c.Close())
		}
		return errors.Join(errs...)
	}, nil
}
