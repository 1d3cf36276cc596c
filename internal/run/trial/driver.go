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

	"skerry/internal/experiment"
	"skerry/internal/load"
	"skerry/internal/machine/host"
	"skerry/internal/record"
)

// driver starts the processes that drive the clients of a trial, each on its client's node.
type driver struct {
	exe  string
	host func(node string) (host.Host, error) // of the lab
	env  *environment
}

// loadSpec is the driver's job for a pool in a phase of a trial.
func (d driver) loadSpec(cell experiment.Cell, pool experiment.Pool, phase load.Phase) (load.Spec, error) {
	e := cell.Experiment
	w, err := e.YCSB(pool)
	if err != nil {
		return load.Spec{}, err
	}
	tree, err := pool.Workload.Tree()
	if err != nil {
		return load.Spec{}, err
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
		s.Audit = &load.AuditSpec{File: filepath.Join(client.Dir(), strings.TrimSuffix("writes-"+pool.Name, "-")), System: client.Files(), HistoryKeys: a.HistoryKeys, Settle: time.Duration(a.Settle)}
		if tree != nil {
			s.Audit.HistoryKeys = 0 // a tree's changes have no versions that a history could be of
		}
	}
	return s, nil
}

func isAudited(e experiment.Experiment, pool experiment.Pool) bool {
	return slices.ContainsFunc(e.Audited(), func(p experiment.Pool) bool { return p.Name == pool.Name })
}

// poolSeed is the seed of a pool, so that each asks for records of its own. A single workload has its trial's.
func poolSeed(seed uint64, pool string) uint64 {
	if pool == "" {
		return seed
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(pool)) // never fails
	return seed ^ h.Sum64()
}

// newJob is what a process is to do for a pool.
func (d driver) newJob(cell experiment.Cell, pool experiment.Pool, spec load.Spec) (load.Pool, error) {
	client, err := d.host(pool.Node(cell.Experiment))
	if err != nil {
		return load.Pool{}, err
	}
	// Clients see the workload's properties too, as YCSB's bindings do: what the
	// workload never asks for (scans) need not be prepared for.
	properties, err := cell.Experiment.Properties(pool)
	if err != nil {
		return load.Pool{}, err
	}
	maps.Copy(properties, d.env.cluster.Properties())
	return load.Pool{Name: pool.Name, Node: client, Agent: load.AgentSpec{Database: d.env.database, Properties: properties, Spec: spec}}, nil
}

// start starts a process that does a job for a pool.
func (d driver) start(ctx context.Context, cell experiment.Cell, pool experiment.Pool, spec load.Spec) (*load.Session, error) {
	j, err := d.newJob(cell, pool, spec)
	if err != nil {
		return nil, err
	}
	return load.StartAgent(ctx, j.Node, d.exe, j.Agent)
}

// startAll starts the workloads of a trial, side by side.
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

// drive has a driver do its job before or after the measurement, and tells of every second of it. A
// cluster that fails ends it, so that nobody waits until the driver gives up.
func (d driver) drive(ctx context.Context, cell experiment.Cell, pool experiment.Pool, spec load.Spec, second func(load.Interval)) (load.Result, error) {
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
		err = fmt.Errorf("%s failed: %w", d.env.database, why) // all else follows from it
	}
	return result, err
}

// runProbes runs short jobs beside the drive until that ends; the one that is under way then is
// cut off and left out. A job that cannot be driven is told of in its place: what a short job
// finds is what is measured.
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
		spec.Seed++ // other keys each time
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

// runProbe is one short job.
func (w *watch) runProbe(pool experiment.Pool, spec load.Spec) record.Probe {
	asked := time.Since(w.began).Seconds()
	s, err := w.driver.start(w.ctx, w.cell, pool, spec)
	if err != nil {
		return record.Probe{Pool: pool.Name, StartS: asked, Error: fmt.Sprintf("starting a short job: %v", err)}
	}
	for range s.Intervals() {
	}
	d, err := s.Wait()
	if err != nil {
		return record.Probe{Pool: pool.Name, StartS: asked, Error: err.Error()}
	}
	return record.Probe{Pool: pool.Name, StartS: d.Started.Sub(w.began).Seconds(), DurationS: d.Duration.Seconds(), Operations: summariseOperations(d)}
}
