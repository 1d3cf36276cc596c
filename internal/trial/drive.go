package trial

import (
	"context"
	"fmt"
	"maps"
	"time"

	"skerry/internal/experiment"
	"skerry/internal/load"
)

// How the table is loaded, which is not what a trial measures: by so many threads, whatever
// the workload's number, and so many records a request where the database takes more than one.
const (
	loadThreads = 32
	loadBatch   = 50
)

// loadTable inserts the records of a trial's workload, and believes it only when the database
// counts them.
func (r *run) loadTable(ctx context.Context, cell experiment.Cell) error {
	spec, err := r.spec(cell, load.PhaseLoad)
	if err != nil {
		return err
	}
	spec.Threads, spec.Target, spec.Arrival, spec.Batch = loadThreads, 0, load.Closed, loadBatch
	spec.Duration = 0 // until it is loaded
	var done int64
	_, err = r.drive(ctx, cell, spec, func(i load.Interval) {
		done += i.OK
		r.stage(fmt.Sprintf("loading: %d of %d records", done, spec.Workload.InsertCount))
	})
	if err != nil {
		return r.explain(fmt.Errorf("loading %d records: %w", spec.Workload.InsertCount, err))
	}
	count, err := r.cluster.Count(ctx)
	if err != nil {
		return r.explain(fmt.Errorf("counting the records after the load: %w", err))
	}
	if count != spec.Workload.InsertCount {
		return fmt.Errorf("loading the table: %d inserts were acknowledged, %s counts %d records",
			spec.Workload.InsertCount, r.Database.Name(), count)
	}
	return nil
}

// warmCluster drives a new cluster that trials will share with each of their workloads, and
// leaves it empty.
func (r *run) warmCluster(ctx context.Context) error {
	workloads := r.Sharing.Workloads
	each := time.Duration(r.Cell.Experiment.ReuseWarmup) / time.Duration(max(1, len(workloads)))
	if each == 0 {
		return nil
	}
	var done int64
	for i, cell := range workloads {
		which := fmt.Sprintf("warming the new cluster up, workload %d of %d", i+1, len(workloads))
		ok, err := r.exercise(ctx, cell, each, which)
		if err != nil {
			return fmt.Errorf("%s: %w", which, err)
		}
		done += ok
	}
	return r.event(0, "warm-up", fmt.Sprintf("the cluster, which is new, has done %d operations of %d workloads", done, len(workloads)))
}

// exercise loads the table of a trial's workload, drives that for so long, as fast as it goes, and
// empties the table. It tells no more than how many operations succeeded.
func (r *run) exercise(ctx context.Context, cell experiment.Cell, length time.Duration, stage string) (int64, error) {
	cell.Experiment.Audit.Enabled = false // nothing of it stays
	if err := r.loadTable(ctx, cell); err != nil {
		return 0, err
	}
	r.stage(stage)
	spec, err := r.spec(cell, load.PhaseRun)
	if err != nil {
		return 0, err
	}
	spec.Threads, spec.Target, spec.Arrival, spec.AfterStall = loadThreads, 0, load.Closed, ""
	spec.Operations, spec.Duration, spec.Warmup = 0, length, 0
	result, err := r.drive(ctx, cell, spec, func(load.Interval) {})
	if err != nil {
		return 0, r.explain(err)
	}
	return result.OK, r.empty(ctx)
}

// drive has a driver do its job before or after the measurement, and tells of every second of it. A
// cluster that fails ends it, so that nobody waits until the driver gives up.
func (r *run) drive(ctx context.Context, cell experiment.Cell, spec load.Spec, second func(load.Interval)) (load.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := r.startDriver(ctx, cell, spec)
	if err != nil {
		return load.Result{}, err
	}
	failed, intervals := r.cluster.Failed(), s.Intervals()
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
	if why := r.clusterErr(); err != nil && why != nil {
		err = fmt.Errorf("%s failed: %w", r.Database.Name(), why) // all else follows from it
	}
	return result, err
}

// spec is the driver's job in a phase of a trial.
func (r *run) spec(cell experiment.Cell, phase load.Phase) (load.Spec, error) {
	e := cell.Experiment
	w, err := e.YCSB()
	if err != nil {
		return load.Spec{}, err
	}
	tree, err := e.Tree()
	if err != nil {
		return load.Spec{}, err
	}
	return load.Spec{
		Phase: phase, Workload: w, Tree: tree,
		Arrival: load.Arrival(e.Workload.Arrival), Threads: e.Workload.Threads, Target: e.Workload.Target,
		MaxInFlight: e.Workload.InFlight, AfterStall: load.AfterStall(e.Workload.Stall),
		Operations: e.Stop.Operations, Duration: time.Duration(e.Stop.Time), Warmup: time.Duration(e.Warmup),
		Timeout: time.Duration(e.Workload.Timeout), Seed: cell.Seed, Audit: r.auditSpec(e),
	}, nil
}

func (r *run) startDriver(ctx context.Context, cell experiment.Cell, spec load.Spec) (*load.Session, error) {
	client, err := r.client()
	if err != nil {
		return nil, err
	}
	// Clients see the workload's properties too, as YCSB's bindings do: what the
	// workload never asks for (scans) need not be prepared for.
	properties, err := cell.Experiment.Properties()
	if err != nil {
		return nil, err
	}
	maps.Copy(properties, r.cluster.Properties())
	return load.StartAgent(ctx, client, r.Exe, load.AgentSpec{
		Database: r.Database.Name(), Properties: properties, Spec: spec,
	})
}
