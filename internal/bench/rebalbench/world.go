package rebalbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/experiment"
	"skerry/internal/lab"
	"skerry/internal/load"
	"skerry/internal/machine/host"
)

// world is a lab with a cluster on it.
type world struct {
	Options
	experiment experiment.Experiment
	lab        *lab.Lab
	scale      float64
	cluster    database.Cluster
	nodes      []host.Host
	control    host.Host
}

// baseline is how long clients are measured before anything moves.
const baseline = 15 * time.Second

// form starts a cluster without latency, loads the records, and lets the latency begin.
// The cluster has to be stopped.
func (w *world) form(ctx context.Context) error {
	if err := w.lab.Scale(ctx, 0); err != nil {
		return err
	}
	w.nodes = nil
	for _, name := range w.experiment.DataNodes() {
		h, err := w.lab.Host(name)
		if err != nil {
			return err
		}
		w.nodes = append(w.nodes, h)
	}
	var err error
	if w.control, err = w.lab.Host(w.experiment.ClientNode()); err != nil {
		return err
	}
	w.Progress("forming a cluster")
	w.cluster, err = w.Database.Start(ctx, database.Env{Nodes: w.nodes, Control: w.control,
		Installation: w.Installation, Progress: w.Progress})
	if err != nil {
		return err
	}
	w.Progress(fmt.Sprintf("loading %d records", w.Records))
	if err = w.fill(ctx); err == nil {
		err = w.lab.Scale(ctx, w.scale)
	}
	if err != nil {
		return errors.Join(err, w.cluster.Stop(context.WithoutCancel(ctx)))
	}
	return nil
}

// pipelined measures leaves and joins.
func (w *world) pipelined(ctx context.Context, s *Scale) (err error) {
	if err := w.form(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.cluster.Stop(context.WithoutCancel(ctx))) }()
	c, err := w.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _, ended := c.end(); err = errors.Join(err, ended) }()
	w.Progress("measuring the baseline")
	from := time.Now()
	calm, err := c.during(ctx, from, from.Add(baseline))
	if err != nil {
		return err
	}
	s.Baseline, s.BaselineP99 = calm.OK, p99(calm)
	var moving load.Totals
	for cycle := range w.Cycles {
		node := w.nodes[cycle%len(w.nodes)]
		for _, join := range []bool{false, true} {
			change, seen, err := w.change(ctx, c, node, join)
			if err != nil {
				return err
			}
			s.Changes = append(s.Changes, change)
			moving.Latency.Merge(seen.Latency)
		}
	}
	s.P99Ratio = p99(moving) / s.BaselineP99
	return nil
}

func p99(t load.Totals) float64 { return milliseconds(t.Latency.Service.Quantile(0.99)) }

func (w *world) change(ctx context.Context, c *clients, node host.Host, join bool) (Change, load.Totals, error) {
	r := Change{Node: node.Name(), Join: join}
	from := time.Now()
	var done database.Change
	var err error
	if join {
		done, err = w.cluster.Join(ctx, node)
	} else {
		done, err = w.cluster.Leave(ctx, node, database.Graceful)
	}
	if err != nil {
		return r, load.Totals{}, err
	}
	seen, err := c.during(ctx, from, time.Now())
	r.Accepted, r.Complete, r.Bytes = done.Accepted.Seconds(), done.Complete.Seconds(), done.Bytes
	r.Operations, r.Failed, r.P99 = seen.OK, seen.Failed+seen.Unknown, p99(seen)
	return r, seen, err
}

// byCLI has redis-cli move slots from the first node to the second.
func (w *world) byCLI(ctx context.Context, s *Scale) (err error) {
	if err := w.form(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.cluster.Stop(context.WithoutCancel(ctx))) }()
	c, err := w.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _, ended := c.end(); err = errors.Join(err, ended) }()
	addr := strings.Split(w.cluster.Properties()["redis.hosts"], ",")
	var ids [2]string
	for i := range ids {
		at, port, _ := strings.Cut(addr[i], ":")
		if ids[i], err = w.cli(ctx, "-h", at, "-p", port, "CLUSTER", "MYID"); err != nil {
			return err
		}
	}
	counts := w.Slots[:]
	if w.AllSlots {
		counts = []int{allSlots / len(w.nodes)}
	}
	for _, n := range counts {
		w.Progress(fmt.Sprintf("moving %d slots by redis-cli", n))
		from := time.Now()
		if _, err := w.cli(ctx, "--cluster", "reshard", addr[0], "--cluster-from", ids[0], "--cluster-to", ids[1],
			"--cluster-slots", strconv.Itoa(n), "--cluster-yes", "--cluster-pipeline", "100"); err != nil {
			return err
		}
		to := time.Now()
		seen, err := c.during(ctx, from, to)
		if err != nil {
			return err
		}
		s.CLI = append(s.CLI, CLI{Slots: n, Seconds: to.Sub(from).Seconds(), P99: p99(seen)})
	}
	return nil
}

// cli runs redis-cli on the client's node and returns what it printed.
func (w *world) cli(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	p, err := w.control.Start(ctx, host.Command{Name: "redis-cli", Path: w.Installation.Programs["redis-cli"],
		Env: w.Installation.Env, Args: args, Stdout: &out, Stderr: &out})
	if err != nil {
		return "", fmt.Errorf("starting redis-cli: %w", err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return "", errors.Join(context.Cause(ctx), p.Kill())
	}
	if p.Err() != nil {
		return "", fmt.Errorf("redis-cli %s: %w: %s", strings.Join(args, " "), p.Err(), strings.TrimSpace(out.String()))
	}
	return strings.TrimSpace(out.String()), nil
}
