package trial

import (
	"context"
	"fmt"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/experiment"
	"skerry/internal/load"
)

// Parameters of loading the table, independent of the workload: threads, and records per request if the
// database supports batches.
const (
	loadThreads = 32
	loadBatch   = 50
)

// table loads and clears the records of a trial's workload.
type table struct {
	driver driver
	env    *environment
	report reporter
}

// loadRecords inserts the records, and verifies that the database counts all of them.
func (t table) loadRecords(ctx context.Context, cell experiment.Cell) (load.Result, error) {
	pool := cell.Experiment.Pools()[0] // all pools use the same records
	spec, err := t.driver.loadSpec(cell, pool, load.PhaseLoad)
	if err != nil {
		return load.Result{}, err
	}
	spec.Threads, spec.Target, spec.Arrival, spec.Batch = loadThreads, 0, load.Closed, loadBatch
	spec.Duration = 0 // unlimited
	if len(cell.Experiment.Pools()) > 1 {
		spec.Workload.InsertStart, spec.Workload.InsertCount = 0, spec.Workload.RecordCount // all pools' records
	}
	var done int64
	loaded, err := t.driver.drive(ctx, cell, pool, spec, func(i load.Interval) {
		done += i.OK
		t.report.setStagef("loading: %d of %d records", done, spec.Workload.InsertCount)
	})
	if err != nil {
		return loaded, t.env.explain(ctx, fmt.Errorf("load %d records: %w", spec.Workload.InsertCount, err))
	}
	count, err := awaitCount(ctx, t.env.cluster.Count, spec.Workload.InsertCount, countPatience)
	if err != nil {
		return loaded, t.env.explain(ctx, fmt.Errorf("count records after the load: %w", t.env.orFailure(err)))
	}
	if count != spec.Workload.InsertCount {
		return loaded, fmt.Errorf("load table: %d inserts were acknowledged, but %s counts %d records",
			spec.Workload.InsertCount, t.env.database, count)
	}
	return loaded, nil
}

// countPatience is the time for which the number of records may stay below the number of acknowledged inserts,
// countPause the time between two counts.
const (
	countPatience = 10 * time.Second
	countPause    = 100 * time.Millisecond
)

// awaitCount counts until there are want records, and returns the last count. A cluster that Skerry did not start may
// count at a member that applies writes later than it acknowledges those of other members: a Galera member without
// wsrep_sync_wait, or a read replica. Therefore a smaller count is final only if it has not grown for patience.
func awaitCount(ctx context.Context, count func(context.Context) (int64, error), want int64, patience time.Duration) (int64, error) {
	highest, grown := int64(-1), time.Now()
	for {
		n, err := count(ctx)
		if err != nil || n >= want {
			return n, err
		}
		if n > highest {
			highest, grown = n, time.Now()
		}
		if time.Since(grown) >= patience {
			return n, nil
		}
		if err := linger.For(ctx, countPause); err != nil {
			return n, err
		}
	}
}

// warmUp drives a new shared cluster with each of its workloads, for length in total, and leaves it empty.
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
		which := fmt.Sprintf("warming up the new cluster, workload %d of %d", i+1, len(all))
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
	return t.report.writeEvent("warm-up", fmt.Sprintf("the new cluster has served %d operations of %s", done, of))
}

// exercise is a workload of the warm-up.
type exercise struct {
	cell experiment.Cell
	pool experiment.Pool
}

// runExercise loads a workload's table, drives it at full speed for length, and clears the table. It
// returns the number of successful operations.
func (t table) runExercise(ctx context.Context, x exercise, length time.Duration, stage string) (int64, error) {
	cell := x.cell
	cell.Experiment.Audit.Enabled = false // its writes are deleted
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

// clear deletes all records once the cluster is ready.
func (t table) clear(ctx context.Context) error {
	t.report.setStage("clearing the table")
	if err := t.env.waitReady(ctx); err != nil {
		return err
	}
	if err := t.env.cluster.Clear(ctx); err != nil {
		return fmt.Errorf("clear table: %w", err)
	}
	return nil
}
