package dbbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/churn"
	"skerry/internal/lab"
	"skerry/internal/machine/host"
	"skerry/internal/topology"
)

// bench is the measurement of one database.
type bench struct {
	Options
	db     database.Database
	in     database.Installation
	result Database
	engine string
}

const (
	// spare is how many nodes may join besides those that form the cluster.
	spare = 2
	// leastMesh is the smallest mesh that there is.
	leastMesh = 2
	// changeTimeout bounds one change of membership.
	changeTimeout = 5 * time.Minute
	// writers and writeRate are the light load that changes are carried out under.
	writers   = 4
	writeRate = 100
)

func (b *bench) note(format string, args ...any) {
	b.result.Notes = append(b.result.Notes, fmt.Sprintf(format, args...))
}

func (b *bench) measure(ctx context.Context) error {
	can := b.db.Capabilities()
	if b.wanted(PartReady) {
		n := max(b.Nodes, can.MinNodes)
		if can.MaxNodes > 0 && n > can.MaxNodes {
			n = can.MaxNodes
			b.note("%d nodes are the most that it takes", n)
		}
		if err := b.on(ctx, n, 0, b.ready); err != nil {
			return err
		}
	}
	if b.wanted(PartCost) {
		if err := b.on(ctx, b.fewest(1), 0, b.cost); err != nil {
			return err
		}
	}
	switch {
	case !b.wanted(PartChurn):
	case !can.Resize:
		b.note("members cannot join or leave")
	default:
		if err := b.on(ctx, b.fewest(3), spare, b.churn); err != nil {
			return err
		}
	}
	return nil
}

// fewest is the smallest cluster of n nodes or more that the database forms with its
// options: node groups of two, for example, are of no odd number.
func (b *bench) fewest(n int) int {
	n = max(n, b.db.Capabilities().MinNodes)
	for more := range 8 {
		if b.db.Check(n+more, b.Settings) == nil {
			return n + more
		}
	}
	return n // starting it says why not
}

// site is a lab with what runs on it.
type site struct {
	nodes, spare []host.Host
	client       host.Host
	cluster      database.Cluster
	took         time.Duration // until the cluster was ready
}

// on makes a lab at no distance, starts a cluster on it, and has it measured.
func (b *bench) on(ctx context.Context, nodes, spare int, measure func(context.Context, site) error) (err error) {
	dir, err := os.MkdirTemp("", "skerry-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { // databases that refuse root have to get in
		return err
	}
	cloud, err := topology.Load(fmt.Sprintf("mesh:%d", max(leastMesh, nodes+spare)))
	if err != nil {
		return err
	}
	if cloud, err = topology.WithClient(cloud, ""); err != nil {
		return err
	}
	b.Progress(fmt.Sprintf("%s: %d nodes", b.result.Name, nodes))
	l, err := lab.Up(ctx, lab.Config{
		Name: "bench", Topology: cloud, Scale: 1, Engine: b.Engine, Exe: b.Exe, Ephemeral: true,
		StateDir: filepath.Join(dir, "state"), DataDir: filepath.Join(dir, "data"),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Down(context.WithoutCancel(ctx))) }()
	b.engine, _ = l.Engine()
	if err := l.Scale(ctx, 0); err != nil {
		return err
	}
	var s site
	for _, n := range cloud.Nodes {
		h, err := l.Host(n.Name)
		switch {
		case err != nil:
			return err
		case n.Role == topology.Client:
			s.client = h
		case len(s.nodes) < nodes:
			s.nodes = append(s.nodes, h)
		default:
			s.spare = append(s.spare, h)
		}
	}
	began := time.Now()
	s.cluster, err = b.db.Start(ctx, database.Env{Nodes: s.nodes, Control: s.client, Installation: b.in, Options: b.Settings, Progress: b.Progress})
	if err != nil {
		return err
	}
	s.took = time.Since(began)
	defer func() { err = errors.Join(err, s.cluster.Stop(context.WithoutCancel(ctx))) }()
	return measure(ctx, s)
}

// ready keeps how long the start took, and what memory the nodes take.
func (b *bench) ready(_ context.Context, s site) error {
	var sum int64
	for _, n := range s.nodes {
		u, err := n.Usage()
		if err != nil {
			return fmt.Errorf("reading what %s uses: %w", n.Name(), err)
		}
		sum += u.Memory
	}
	b.result.Nodes, b.result.ReadySeconds = len(s.nodes), s.took.Seconds()
	b.result.NodeBytes = sum / int64(len(s.nodes))
	return nil
}

// cost has the client's node measure the client.
func (b *bench) cost(ctx context.Context, s site) error {
	b.Progress(b.result.Name + ": what its client costs")
	a, err := startAgent(ctx, s.client, b.Exe, job{Kind: jobCost, Database: b.db.Name(), Properties: s.cluster.Properties()})
	if err != nil {
		return err
	}
	answer, err := a.Wait(ctx)
	if err != nil {
		return err
	}
	if b.result.Cost = answer.Cost; b.result.Cost.Handwritten == 0 {
		b.note("its package has no loop written by hand to compare the client with")
	}
	return nil
}

// churn has the client's node write while members join and leave.
func (b *bench) churn(ctx context.Context, s site) error {
	var fixed map[string]string
	var names []string
	for _, n := range s.nodes {
		names = append(names, n.Name())
	}
	if anchored, ok := b.db.(database.Anchored); ok {
		fixed = anchored.Fixed(names, b.Settings)
	}
	plan := churn.Plan{
		Changes: b.Changes, Seed: b.Seed, Nodes: append(s.nodes, s.spare...), Members: names,
		Least: max(1, b.db.Capabilities().MinNodes), Fixed: fixed, Timeout: changeTimeout,
		Say: func(step string) { b.Progress(b.result.Name + ": " + step) },
	}
	a, err := startAgent(ctx, s.client, b.Exe, job{Kind: jobWrite, Database: b.db.Name(), Properties: s.cluster.Properties(),
		Writers: writers, Rate: writeRate})
	if err != nil {
		return err
	}
	steps, err := plan.Carry(ctx, s.cluster)
	if err != nil {
		return errors.Join(err, a.Kill())
	}
	if err := a.Tell(job{Properties: s.cluster.Properties()}); err != nil {
		return err
	}
	answer, err := a.Wait(ctx)
	if err != nil {
		return err
	}
	b.result.Churn = &churn.Report{Seed: b.Seed, Steps: steps, Account: *answer.Account}
	return nil
}
