package trial

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/experiment"
	"skerry/internal/load"
	"skerry/internal/machine/host"
	"skerry/internal/record"
)

// driver starts the load processes, each on its client's node.
type driver struct {
	exe  string
	host func(node string) (host.Host, error) // returns a node of the lab
	env  *environment
}

// loadSpec returns the driver's job for a pool in one phase of the trial.
func (d driver) loadSpec(cell experiment.Cell, pool experiment.Pool, phase load.Phase) (load.Spec, error) {
	e := cell.Experiment
	w, err := e.YCSBWorkload(pool)
	if err != nil {
		return load.Spec{}, err
	}
	tree, err := pool.Workload.Tree()
	if err != nil {
		return load.Spec{}, err
	}
	if table := d.env.cluster.Properties()[database.PropTable]; table != "" { // of a cluster that Skerry did not start
		w.Table = table
	}
	asked := pool.Workload
	s := load.Spec{
		Phase: phase, Workload: w, Tree: tree,
		Arrival: load.Arrival(asked.Arrival), Threads: asked.Threads, Target: asked.Target,
		MaxInFlight: asked.InFlight, AfterStall: load.AfterStall(asked.Stall),
		Operations: e.Stop.Operations, Duration: time.Duration(e.Stop.Time), Warmup: time.Duration(e.Warmup),
		Timeout: time.Duration(asked.Timeout), Seed: poolSeed(cell.Seed, pool.Name),
	}
	if a := e.Audit; a.Enabled && (phase == load.PhaseLoad || isAudited(e, pool)) {
		client, err := d.host(pool.Node(e))
		if err != nil {
			return s, err
		}
		s.Audit = &load.AuditSpec{
			File: filepath.Join(client.Dir(), strings.TrimSuffix("writes-"+pool.Name, "-")), System: client.Files(),
			HistoryKeys: a.HistoryKeys, Settle: time.Duration(a.Settle),
		}
		if tree != nil {
			s.Audit.HistoryKeys = 0 // changes of a tree have no versions
		}
	}
	return s, nil
}

func isAudited(e experiment.Experiment, pool experiment.Pool) bool {
	return slices.ContainsFunc(e.AuditedPools(), func(p experiment.Pool) bool { return p.Name == pool.Name })
}

// poolSeed derives a seed for each pool so that pools request different records. A single workload uses the
// trial's seed.
func poolSeed(seed uint64, pool string) uint64 {
	if pool == "" {
		return seed
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(pool)) // cannot fail
	return seed ^ h.Sum64()
}

func (d driver) newJob(cell experiment.Cell, pool experiment.Pool, spec load.Spec) (load.Pool, error) {
	client, err := d.host(pool.Node(cell.Experiment))
	if err != nil {
		return load.Pool{}, err
	}
	// Clients see the workload's properties, as YCSB's bindings do. They need not prepare for operations
	// that the workload never requests, such as scans.
	properties, err := cell.Experiment.Properties(pool)
	if err != nil {
		return load.Pool{}, err
	}
	maps.Copy(properties, d.env.cluster.Properties())
	return load.Pool{Name: pool.Name, Node: client, Agent: load.AgentSpec{
		Database: d.env.database, Properties: properties, Spec: spec, Env: database.AccessVariables(properties),
	}}, nil
}

func (d driver) start(ctx context.Context, cell experiment.Cell, pool experiment.Pool, spec load.Spec) (*load.Session, error) {
	j, err := d.newJob(cell, pool, spec)
	if err != nil {
		return nil, err
	}
	return load.StartAgent(ctx, j.Node, d.exe, j.Agent)
}

// startAll starts all workloads of a trial, to run concurrently.
func (d driver) startAll(ctx context.Context, cell experiment.Cell) (*load.Pools, error) {
	var jobs []load.Pool
	for _, p := range cell.Experiment.Pools() {
		spec, err := d.loadSpec(cell, p, load.PhaseRun)
		if err != nil {
			return nil, err
		}
		j, err := d.newJob(cell, p, spec)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return load.StartPools(ctx, d.exe, jobs)
}

// drive runs a driver outside the measurement and calls second after every second. If the cluster fails,
// drive stops at once instead of waiting for the driver's timeouts.
func (d driver) drive(
	ctx context.Context, cell experiment.Cell, pool experiment.Pool, spec load.Spec,
	second func(load.Interval),
) (load.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := d.start(ctx, cell, pool, spec)
	if err != nil {
		return load.Result{}, err
	}
	failed, intervals := d.env.cluster.Failed(), s.Intervals()
	for intervals != nil {
		select {
		case <-failed:
			failed = nil
			cancel()
		case i, ok := <-intervals:
			if !ok {
				intervals = nil
				break
			}
			second(i)
		}
	}
	result, err := s.Wait()
	if why := d.env.clusterFailure(); err != nil && why != nil {
		err = fmt.Errorf("%s failed: %w", d.env.database, why) // the root cause
	}
	return result, err
}

// runProbes runs short jobs concurrently with the drive until it ends. The last job is cut off and not
// recorded. A job that fails is recorded with its error, because failures are part of the measurement.
func (w *watch) runProbes(pool experiment.Pool) error {
	p := *pool.Workload.Probes
	spec, err := w.driver.loadSpec(w.cell, pool, load.PhaseRun)
	if err != nil {
		return err
	}
	spec.Arrival, spec.Target, spec.Threads, spec.AfterStall = load.Closed, 0, p.Threads, ""
	spec.Operations, spec.Duration, spec.Warmup = p.Operations, 0, 0
	tick := time.NewTicker(p.Every.Duration())
	defer tick.Stop()
	for {
		spec.Seed++ // different keys in each job
		job := w.runProbe(pool, spec)
		if w.ctx.Err() != nil {
			return nil
		}
		w.mu.Lock()
		w.probes = append(w.probes, job)
		w.mu.Unlock()
		select {
		case <-w.ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (w *watch) runProbe(pool experiment.Pool, spec load.Spec) record.Probe {
	asked := time.Since(w.began).Seconds()
	s, err := w.driver.start(w.ctx, w.cell, pool, spec)
	if err != nil {
		return record.Probe{Pool: pool.Name, StartS: asked, Error: fmt.Sprintf("start short job: %v", err)}
	}
	for range s.Intervals() {
	}
	d, err := s.Wait()
	if err != nil {
		return record.Probe{Pool: pool.Name, StartS: asked, Error: err.Error()}
	}
	return record.Probe{
		Pool: pool.Name, StartS: d.Started.Sub(w.began).Seconds(), DurationS: d.Duration.Seconds(),
		Operations: d.Summaries(),
	}
}
