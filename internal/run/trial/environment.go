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

// tearDownTimeout bounds the end of a trial: stopping the cluster, keeping logs, taking
// the lab down. It counts from the end of the measurement or its cancellation.
const tearDownTimeout = 60 * time.Second

// environment is what a trial stands on: a lab and a cluster, made for it or left by another trial.
type environment struct {
	database string   // its name
	members  []string // nodes that the cluster is to be on
	lab      *lab.Lab // nil until it is up
	cluster  database.Cluster
	testbed  *event.Testbed  // what events act on
	madeBy   int             // the trial that made lab and cluster, 0 for this one
	loaded   load.Result     // of the trial's table
	phases   *PhaseScheduler // of trials that run at the same time
	// logged is how much of each of the cluster's logs is of earlier trials, in bytes.
	oldLogSizes map[string]int64
}

func newEnvironment(d database.Database, e experiment.Experiment, turns *PhaseScheduler) *environment {
	return &environment{database: d.Name(), members: e.DataNodes(), phases: turns}
}

// clusterFailure is why the cluster failed, nil while it runs.
func (g *environment) clusterFailure() error {
	select {
	case <-g.cluster.Failed():
		return g.cluster.Err()
	default:
		return nil
	}
}

// failureNoticeTime is how long after an error of the database the news may come that a server has ended.
const failureNoticeTime = time.Second

// orFailure is an error of the database, or that the cluster has failed where the error follows
// from that: a connection is refused some moments before anybody has waited for the process.
func (g *environment) orFailure(err error) error {
	select {
	case <-g.cluster.Failed():
		return fmt.Errorf("%s failed: %w", g.database, g.cluster.Err())
	case <-time.After(failureNoticeTime):
		return err
	}
}

// explain adds to a failure of the database which of its nodes' disks are full.
func (g *environment) explain(ctx context.Context, err error) error {
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
func (g *environment) tearDown(ctx context.Context, w *record.TrialWriter) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tearDownTimeout)
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
		g.phases.removeLab(g.lab)
		if err := g.lab.Down(ctx); err != nil {
			errs = append(errs, fmt.Errorf("taking the lab down: %w", err))
		}
	}
	return errors.Join(errs...)
}

// keepLogs keeps what the cluster has logged during the trial, even when ctx has ended.
func (g *environment) keepLogs(ctx context.Context, w *record.TrialWriter) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tearDownTimeout)
	defer cancel()
	if err := w.Logs(ctx, g.cluster.Logs(), g.oldLogSizes); err != nil {
		return recordError{err}
	}
	return nil
}

// logSizes is how far the cluster's logs have got, in bytes: what stands there is of earlier
// trials.
func (g *environment) logSizes(ctx context.Context) map[string]int64 {
	sizes := map[string]int64{}
	for name, log := range g.cluster.Logs() {
		if st, err := log.On.Stat(ctx, log.Path); err == nil {
			sizes[name] = st.Size
		}
	}
	return sizes
}

// ClusterPool is a lab and a cluster that outlive a trial, for the next one that can run on them.
// The zero Kept holds nothing.
type ClusterPool struct {
	key string // experiment.Experiment.Footing
	env *environment
}

// Sharing is what trials that follow each other on one cluster ask of it.
type Sharing struct {
	FarthestScale float64           // the largest of their scales
	Workloads     []experiment.Cell // one trial of each workload
}

// Key names what is kept, "" for nothing.
func (k *ClusterPool) Key() string { return k.key }

// Close ends what is kept.
func (k *ClusterPool) Close(ctx context.Context) error {
	if k.env == nil {
		return nil
	}
	g := k.env
	*k = ClusterPool{}
	return g.tearDown(ctx, nil)
}

// acquire hands over what is kept to a trial that can stand on it; false where there is nothing,
// or something else, which is ended.
func (k *ClusterPool) acquire(ctx context.Context, e experiment.Experiment, g *environment, tell reporter) (bool, error) {
	if k == nil || k.env == nil {
		return false, nil
	}
	if k.key != e.ClusterKey() {
		tell.setStage("taking the lab down")
		return false, k.Close(ctx)
	}
	g.lab, g.cluster, g.madeBy = k.env.lab, k.env.cluster, k.env.madeBy
	g.oldLogSizes = g.logSizes(ctx)
	*k = ClusterPool{}
	return true, nil
}

// release leaves the ground of a trial to those that follow, where they ask for that and nothing
// is wrong with it.
func (k *ClusterPool) release(c experiment.Cell, g *environment) bool {
	footing := c.Experiment.ClusterKey()
	if k == nil || footing == "" || g.lab == nil || g.cluster == nil || g.clusterFailure() != nil {
		return false
	}
	left := *g
	if left.madeBy == 0 {
		left.madeBy = c.ID
	}
	*k = ClusterPool{key: footing, env: &left}
	return true
}

const (
	// settleWait bounds how long a cluster may take to say that it serves again: after
	// events, or where it rearranges itself between two trials that share it.
	readyTimeout = 2 * time.Minute
	readyPoll    = 100 * time.Millisecond
)

// waitReady returns when every member says that the cluster serves.
func (g *environment) waitReady(ctx context.Context) error {
	asking, stop := context.WithTimeout(ctx, readyTimeout)
	defer stop()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		err := g.cluster.Ready(asking)
		if err == nil {
			return nil
		}
		select {
		case <-g.cluster.Failed():
			return errors.Join(fmt.Errorf("%s does not serve: %w", g.database, err), g.cluster.Err())
		case <-asking.Done():
			return fmt.Errorf("waiting for %s to serve: %w", g.database, errors.Join(asking.Err(), err))
		case <-tick.C:
		}
	}
}
