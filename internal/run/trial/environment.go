package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/external"
	"skerry/internal/event"
	"skerry/internal/experiment"
	"skerry/internal/lab"
	"skerry/internal/load"
	"skerry/internal/machine/host"
	"skerry/internal/record"
)

// tearDownTimeout bounds stopping the cluster, copying logs and removing the lab.
const tearDownTimeout = 60 * time.Second

// environment is the lab and cluster of a trial, either new or taken from the pool.
type environment struct {
	database string
	members  []string // nodes of the cluster
	lab      *lab.Lab // nil until it is up
	cluster  database.Cluster
	testbed  *event.Testbed    // what events act on
	madeBy   int               // the trial that created lab and cluster, 0 for this one
	loaded   load.Result       // result of loading the trial's table
	scratch  *external.Scratch // on a cluster that Skerry did not start, nil in a lab
	phases   *PhaseScheduler   // shared with trials that run at the same time
	// oldLogSizes is the size of each log of the cluster, in bytes, when this trial began.
	oldLogSizes map[string]int64
}

func newEnvironment(d database.Database, e experiment.Experiment, turns *PhaseScheduler) *environment {
	return &environment{database: d.Name(), members: e.DataNodes(), phases: turns}
}

// clusterFailure returns why the cluster failed, nil while it runs.
func (g *environment) clusterFailure() error {
	select {
	case <-g.cluster.Failed():
		return g.cluster.Err()
	default:
		return nil
	}
}

// failureNoticeTime is how long after a database error the exit of a server may be noticed.
const failureNoticeTime = time.Second

// orFailure returns the cluster's failure if one follows within failureNoticeTime, otherwise err. A refused
// connection often precedes the notice that the process has exited.
func (g *environment) orFailure(err error) error {
	select {
	case <-g.cluster.Failed():
		return fmt.Errorf("%s failed: %w", g.database, g.cluster.Err())
	case <-time.After(failureNoticeTime):
		return err
	}
}

// explain adds full disks of members to a database error.
func (g *environment) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var nodes []host.Host
	for _, name := range g.members {
		if h, e := g.lab.Host(name); e == nil { // a removed node explains nothing
			nodes = append(nodes, h)
		}
	}
	return database.ExplainDiskFull(ctx, err, nodes)
}

// removal describes what tearDown does.
func (g *environment) removal() string {
	if c := g.externalCluster(); c != nil {
		return c.DescribeStop()
	}
	return "removing the lab"
}

// tearDown stops the cluster and removes the lab, even if ctx has ended. It copies the cluster's logs if w
// is not nil.
func (g *environment) tearDown(ctx context.Context, w *record.TrialWriter) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tearDownTimeout)
	defer cancel()
	var errs []error
	if g.cluster != nil {
		if err := g.cluster.Stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", g.database, err))
		}
		if w != nil {
			errs = append(errs, g.keepLogs(ctx, w))
		}
	}
	if g.lab != nil {
		g.phases.removeLab(g.lab)
		if err := g.lab.Down(ctx); err != nil {
			errs = append(errs, fmt.Errorf("remove lab: %w", err))
		}
	}
	errs = append(errs, g.scratch.Release(ctx))
	return errors.Join(errs...)
}

// keepLogs copies what the cluster logged during the trial, even if ctx has ended.
func (g *environment) keepLogs(ctx context.Context, w *record.TrialWriter) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tearDownTimeout)
	defer cancel()
	if err := w.Logs(ctx, g.cluster.Logs(), g.oldLogSizes); err != nil {
		return recordError{err}
	}
	return nil
}

// logSizes returns the current size of each log of the cluster, in bytes.
func (g *environment) logSizes(ctx context.Context) map[string]int64 {
	sizes := map[string]int64{}
	for name, log := range g.cluster.Logs() {
		if st, err := log.On.Stat(ctx, log.Path); err == nil {
			sizes[name] = st.Size
		}
	}
	return sizes
}

// ClusterPool holds at most one lab and cluster between trials that reuse them. The zero value is empty.
type ClusterPool struct {
	key string // experiment.Experiment.ClusterKey of the cluster
	env *environment
}

// Sharing describes the trials that share one cluster.
type Sharing struct {
	FarthestScale float64           // largest scale of these trials
	Workloads     []experiment.Cell // one trial of each workload
}

// Key returns the cluster key of the pooled cluster, "" if the pool is empty.
func (k *ClusterPool) Key() string { return k.key }

// Close removes the pooled cluster and its lab.
func (k *ClusterPool) Close(ctx context.Context) error {
	if k.env == nil {
		return nil
	}
	g := k.env
	*k = ClusterPool{}
	return g.tearDown(ctx, nil)
}

// acquire moves the pooled cluster into g if its key matches. Otherwise it removes the pooled cluster and
// returns false.
func (k *ClusterPool) acquire(ctx context.Context, e experiment.Experiment, g *environment, report reporter) (bool, error) {
	if k == nil || k.env == nil {
		return false, nil
	}
	if k.key != e.ClusterKey() {
		report.setStage(k.env.removal())
		return false, k.Close(ctx)
	}
	g.lab, g.cluster, g.scratch, g.madeBy = k.env.lab, k.env.cluster, k.env.scratch, k.env.madeBy
	g.oldLogSizes = g.logSizes(ctx)
	*k = ClusterPool{}
	return true, nil
}

// release puts the environment into the pool and returns true, if the trial's cluster may be reused and is
// healthy.
func (k *ClusterPool) release(c experiment.Cell, g *environment) bool {
	key := c.Experiment.ClusterKey()
	if k == nil || key == "" || g.lab == nil || g.cluster == nil || g.clusterFailure() != nil {
		return false
	}
	left := *g
	if left.madeBy == 0 {
		left.madeBy = c.ID
	}
	*k = ClusterPool{key: key, env: &left}
	return true
}

const (
	// readyTimeout bounds how long a cluster may take to serve again, after events or between trials that
	// share it.
	readyTimeout = 2 * time.Minute
	readyPoll    = 100 * time.Millisecond
)

// waitReady waits until every member reports that the cluster serves.
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
			return errors.Join(fmt.Errorf("%s is not ready: %w", g.database, err), g.cluster.Err())
		case <-asking.Done():
			return fmt.Errorf("wait until %s is ready: %w", g.database, errors.Join(asking.Err(), err))
		case <-tick.C:
		}
	}
}
