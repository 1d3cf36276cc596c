package trial

import (
	"context"
	"fmt"
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

// table is what a trial's workload works on.
type table struct {
	driver driver
	env    *environment
	report reporter
}

// loadRecords inserts the records that a trial's workloads work on, and believes it only when the database
// counts them.
func (t table) loadRecords(ctx context.Context, cell experiment.Cell) (load.Result, error) {
	pool := cell.Experiment.Pools()[0] // the records of all are the same
	spec, err := t.driver.loadSpec(cell, pool, load.PhaseLoad)
	if err != nil {
		return load.Result{}, err
	}
	spec.Threads, spec.Target, spec.Arrival, spec.Batch = loadThreads, 0, load.Closed, loadBatch
	spec.Duration = 0 // until it is loaded
	if len(cell.Experiment.Pools()) > 1 {
		spec.Workload.InsertStart, spec.Workload.InsertCount = 0, spec.Workload.RecordCount // whichever of them the pool is for
	}
	var done int64
	loaded, err := t.driver.drive(ctx, cell, pool, spec, func(i load.Interval) {
		done += i.OK
		t.report.setStagef("loading: %d of %d records", done, spec.Workload.InsertCount)
	})
	if err != nil {
		return loaded, t.env.explain(ctx, fmt.Errorf("loading %d records: %w", spec.Workload.InsertCount, err))
	}
	count, err := t.env.cluster.Count(ctx)
	if err != nil {
		return loaded, t.env.explain(ctx, fmt.Errorf("counting the records after the load: %w", t.env.orFailure(err)))
	}
	if count != spec.Workload.InsertCount {
		return loaded, fmt.Errorf("loading the table: %d inserts were acknowledged, %s counts %d records",
			spec.Workload.InsertCount, t.env.database, count)
	}
	return loaded, nil
}

// warmUp drives a new cluster that trials will share with each of their workloads, for so long
// altogether, and leaves it empty.
func (t table) warmUp(ctx context.Context, workloads []experiment.Cell, length time.Duration) error {
	var all []exercise
	for _, cell := range workloads {
		for _, p := range cell.Experiment.Pools() {
			all = append(all, exercise{cell, p})
		}
	}
	each := length / time.Duration(max(1, len(all)))
	if each == 0 {
		return nil
	}
	var done int64
	for i, x := range all {
		which := fmt.Sprintf("warming the new cluster up, workload %d of %d", i+1, len(all))
		ok, err := t.runExercise(ctx, x, each, which)
		if err != nil {
			return fmt.Errorf("%s: %w", which, err)
		}
		done += ok
	}
	of := "its workload"
	if len(all) > 1 {
		of = fmt.Sprintf("%d workloads", len(all))
	}
	return t.report.writeEvent(0, "warm-up", fmt.Sprintf("the cluster, which is new, has done %d operations of %s", done, of))
}

// exercise is a workload that a new cluster is warmed up with.
type exercise struct {
	cell experiment.Cell
	pool experiment.Pool
}

// runExercise loads the table of a workload, drives that for so long, as fast as it goes, and
// empties the table. It tells no more than how many operations succeeded.
func (t table) runExercise(ctx context.Context, x exercise, length time.Duration, stage string) (int64, error) {
	cell := x.cell
	cell.Experiment.Audit.Enabled = false // nothing of it stays
	if _, err := t.loadRecords(ctx, cell); err != nil {
		return 0, err
	}
	t.report.setStage(stage)
	spec, err := t.driver.loadSpec(cell, x.pool, load.PhaseRun)
	if err != nil {
		return 0, err
	}
	spec.Threads, spec.Target, spec.Arrival, spec.AfterStall = loadThreads, 0, load.Closed, ""
	spec.Operations, spec.Duration, spec.Warmup = 0, length, 0
	result, err := t.driver.drive(ctx, cell, x.pool, spec, func(i load.Interval) { t.report.setStagef("%s: %.0f ops/s", stage, rate(i)) })
	if err != nil {
		return 0, t.env.explain(ctx, err)
	}
	return result.OK, t.clear(ctx)
}

// clear empties the table, once the cluster has settled.
func (t table) clear(ctx context.Context) error {
	t.report.setStage("emptying the table")
	if err := t.env.waitReady(ctx); err != nil {
		return err
	}
	if err := t.env.cluster.Clear(ctx); err != nil {
		return fmt.Errorf("emptying the table: %w", err)
	}
	return nil
}
