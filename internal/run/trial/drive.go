package trial

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"skerry/internal/experiment"
	"skerry/internal/load"
	"skerry/internal/machine/host"
)

// driver starts the processes that drive the clients of a trial, on the client's node.
type driver struct {
	exe    string
	client host.Host
	ground *ground
}

// spec is the driver's job in a phase of a trial.
func (d driver) spec(cell experiment.Cell, phase load.Phase) (load.Spec, error) {
	e := cell.Experiment
	w, err := e.YCSB()
	if err != nil {
		return load.Spec{}, err
	}
	tree, err := e.Tree()
	if err != nil {
		return load.Spec{}, err
	}
	s := load.Spec{
		Phase: phase, Workload: w, Tree: tree,
		Arrival: load.Arrival(e.Workload.Arrival), Threads: e.Workload.Threads, Target: e.Workload.Target,
		MaxInFlight: e.Workload.InFlight, AfterStall: load.AfterStall(e.Workload.Stall),
		Operations: e.Stop.Operations, Duration: time.Duration(e.Stop.Time), Warmup: time.Duration(e.Warmup),
		Timeout: time.Duration(e.Workload.Timeout), Seed: cell.Seed,
	}
	if a := e.Audit; a.Enabled {
		s.Audit = &load.AuditSpec{File: filepath.Join(d.client.Dir(), "writes"), On: d.client.Files(), HistoryKeys: a.HistoryKeys, Settle: time.Duration(a.Settle)}
		if tree != nil {
			s.Audit.HistoryKeys = 0 // a tree's changes have no versions that a history could be of
		}
	}
	return s, nil
}

// start starts a process that does a job.
func (d driver) start(ctx context.Context, cell experiment.Cell, spec load.Spec) (*load.Session, error) {
	// Clients see the workload's properties too, as YCSB's bindings do: what the
	// workload never asks for (scans) need not be prepared for.
	properties, err := cell.Experiment.Properties()
	if err != nil {
		return nil, err
	}
	maps.Copy(properties, d.ground.cluster.Properties())
	return load.StartAgent(ctx, d.client, d.exe, load.AgentSpec{Database: d.ground.database, Properties: properties, Spec: spec})
}

// drive has a driver do its job before or after the measurement, and tells of every second of it. A
// cluster that fails ends it, so that nobody waits until the driver gives up.
func (d driver) drive(ctx context.Context, cell experiment.Cell, spec load.Spec, second func(load.Interval)) (load.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := d.start(ctx, cell, spec)
	if err != nil {
		return load.Result{}, err
	}
	failed, intervals := d.ground.cluster.Failed(), s.Intervals()
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
	if why := d.ground.failure(); err != nil && why != nil {
		err = fmt.Errorf("%s failed: %w", d.ground.database, why) // all else follows from it
	}
	return result, err
}
