package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/database"
	"skerry/internal/event"
	"skerry/internal/experiment"
	"skerry/internal/lab"
	"skerry/internal/load"
	"skerry/internal/machine/host"
	"skerry/internal/record"
)

// tearDownTime bounds the end of a trial: stopping the cluster, keeping logs, taking
// the lab down. It counts from the end of the measurement or its cancellation.
const tearDownTime = 60 * time.Second

// ground is what a trial stands on: a lab and a cluster, made for it or left by another trial.
type ground struct {
	database string   // its name
	members  []string // nodes that the cluster is to be on
	lab      *lab.Lab // nil until it is up
	cluster  database.Cluster
	world    *event.Testbed // what events act on
	madeBy   int            // the trial that made lab and cluster, 0 for this one
	loaded   load.Result    // of the trial's table
	turns    *Turns         // of trials that run at the same time
	// logged is how much of each of the cluster's logs is of earlier trials, in bytes.
	logged map[string]int64
}

func newGround(d database.Database, e experiment.Experiment, turns *Turns) *ground {
	return &ground{database: d.Name(), members: e.DataNodes(), turns: turns}
}

// failure is why the cluster failed, nil while it runs.
func (g *ground) failure() error {
	select {
	case <-g.cluster.Failed():
		return g.cluster.Err()
	default:
		return nil
	}
}

// deathNews is how long after an error of the database the news may come that a server has ended.
const deathNews = time.Second

// because is an error of the database, or that the cluster has failed where the error follows
// from that: a connection is refused some moments before anybody has waited for the process.
func (g *ground) because(err error) error {
	select {
	case <-g.cluster.Failed():
		return fmt.Errorf("%s failed: %w", g.database, g.cluster.Err())
	case <-time.After(deathNews):
		return err
	}
}

// explain adds to a failure of the database which of its nodes' disks are full.
func (g *ground) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var nodes []host.Host
	for _, name := range g.members {
		if h, e := g.lab.Host(name); e == nil { // one that is gone explains nothing
			nodes = append(nodes, h)
		}
	}
	return database.Explain(ctx, err, nodes)
}

// tearDown ends lab and cluster, in the reverse order of their making, even when ctx has ended.
// What the cluster has logged to its end is kept where there is a trial to keep it.
func (g *ground) tearDown(ctx context.Context, w *record.TrialWriter) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tearDownTime)
	defer cancel()
	var errs []error
	if g.cluster != nil {
		if err := g.cluster.Stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", g.database, err))
		}
		if w != nil {
			errs = append(errs, g.keepLogs(ctx, w))
		}
	}
	if g.lab != nil {
		g.turns.remove(g.lab)
		if err := g.lab.Down(ctx); err != nil {
			errs = append(errs, fmt.Errorf("taking the lab down: %w", err))
		}
	}
	return errors.Join(errs...)
}

// keepLogs keeps what the cluster has logged during the trial, even when ctx has ended.
func (g *ground) keepLogs(ctx context.Context, w *record.TrialWriter) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tearDownTime)
	defer cancel()
	if err := w.Logs(ctx, g.cluster.Logs(), g.logged); err != nil {
		return recordError{err}
	}
	return nil
}

// logSizes is how far the cluster's logs have got, in bytes: what stands there is of earlier
// trials.
func (g *ground) logSizes(ctx context.Context) map[string]int64 {
	sizes := map[string]int64{}
	for name, log := range g.cluster.Logs() {
		if st, err := log.On.Stat(ctx, log.Path); err == nil {
			sizes[name] = st.Size
		}
	}
	return sizes
}
