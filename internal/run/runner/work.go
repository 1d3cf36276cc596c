package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/load"
	"skerry/internal/load/ycsb"
	"skerry/internal/machine/files"
	"skerry/internal/record"
)

// Work measures some trials of a run, in the run directory or in a copy of its plan, possibly concurrently
// with other workers: the first result of a trial counts. Trials with a result are skipped unless
// Config.Suspect is set and the result is suspect.
func Work(ctx context.Context, dir string, c Config, only []int) (err error) {
	r := &run{Config: c}
	work, err := record.OpenWorker(dir)
	if err != nil {
		return err
	}
	r.opener, r.onLab = work, func(string, string, []string) error { return nil }
	plan := work.Run().Plan
	if err := errors.Join(checkPlan(plan, planTrials(c.Experiment)), checkFiles(work.Run().Files, c.Experiment.FileDigests())); err != nil {
		return err
	}
	left, err := r.missingTrials(work, only)
	if err != nil || len(left) == 0 {
		return err
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.closeMachines()) }()
	was := work.Run().Versions
	if err := errors.Join(r.checkDatabases(was.Databases), r.checkProgram(was)); err != nil {
		return err
	}
	if err := r.calibrate(ctx); err != nil {
		return err
	}
	lane := &lane{progress: r.Progress}
	err = errors.Join(r.runEach(ctx, lane, left), lane.pool.Close(context.WithoutCancel(ctx)))
	r.Progress.Done()
	return err
}

// checkProgram refuses another version of skerry. Another build of the same version is accepted; the
// trial's record has its checksum.
func (r *run) checkProgram(was record.Versions) (err error) {
	if was.Skerry != r.Version {
		return advice.With(fmt.Errorf("the run uses skerry %s, this is %s", was.Skerry, r.Version), "install that version here")
	}
	r.machine.Program, err = files.SHA256("/proc/self/exe")
	return err
}

func (r *run) calibrate(ctx context.Context) error {
	r.Progress.Livef("calibrating this machine")
	c, err := calibrateMachine(ctx)
	r.machine.Calibration = &c
	return err
}

// missingTrials returns the given trials that have no result, in the order of the plan.
func (r *run) missingTrials(work *record.Worker, only []int) ([]record.Planned, error) {
	var left []record.Planned
	found := 0
	for _, p := range work.Run().Plan {
		if !slices.Contains(only, p.ID) {
			continue
		}
		found++
		t, err := work.Result(p.ID)
		if err != nil {
			return nil, err
		}
		if t != nil && t.State == record.TrialOK && !(r.Suspect && t.Verdict.State == record.Suspect) {
			r.Progress.Linef("trial %d already has a result", p.ID)
			continue
		}
		left = append(left, p)
	}
	if found < len(only) {
		return nil, advice.With(fmt.Errorf(
			"%w: the plan has %d trials, and not all of those that are asked for", record.ErrNoTrial,
			len(work.Run().Plan),
		),
			"the plan stands in run.json")
	}
	return left, nil
}

// runEach measures trials one after another. A failed trial does not end the others.
func (r *run) runEach(ctx context.Context, lane *lane, left []record.Planned) error {
	failed := 0
	for _, p := range left {
		which := fmt.Sprintf("trial %d", p.ID)
		t, err := r.runTrial(ctx, &attempt{planned: p, lane: lane}, which+" "+r.describe(p))
		if err != nil {
			return err
		}
		r.report(which, p, t)
		switch t.State {
		case record.TrialInterrupted:
			return fmt.Errorf("interrupted in trial %d: %w", p.ID, context.Cause(ctx))
		case record.TrialFailed:
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d %w", failed, len(left), ErrTrials)
	}
	return nil
}

// Parameters of the calibration, a second of work before a task's first trial that makes machines
// comparable.
const (
	rounds     = 3        // the median counts, because one round may be disturbed
	operations = "100000" // per round; a tenth of a second on a core of 2020
	echoes     = 2000
)

func calibrateMachine(ctx context.Context) (record.Calibration, error) {
	var c record.Calibration
	var driver []float64
	for i := range rounds {
		v, err := measureDriver(ctx, uint64(i))
		if err != nil {
			return c, fmt.Errorf("calibrate this machine: %w", err)
		}
		driver = append(driver, v)
	}
	slices.Sort(driver)
	trips, err := measureLoopback(ctx)
	if err != nil {
		return c, fmt.Errorf("calibrate this machine: %w", err)
	}
	slices.Sort(trips)
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	return record.Calibration{
		DriverOps: driver[rounds/2], LoopbackP50US: us(trips[len(trips)/2]), LoopbackP99US: us(trips[len(trips)*99/100]),
	}, nil
}

// measureDriver returns the operations of one worker per second of CPU time, against the null database.
func measureDriver(ctx context.Context, seed uint64) (float64, error) {
	p, _ := ycsb.Builtin("a")
	w, _, err := ycsb.Parse(p.Merge(ycsb.Properties{"recordcount": "10000", "operationcount": operations}))
	if err != nil {
		return 0, err
	}
	db := new(load.NullDatabase)
	got, err := load.Run(ctx, load.Spec{Phase: load.PhaseRun, Workload: w, Threads: 1, Seed: seed},
		func(ctx context.Context) (load.Client, error) { return db.Open(ctx, nil) }, nil)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return 0, fmt.Errorf("drive null database: %w", err)
	}
	return float64(got.OK) / got.CPU.Seconds(), nil
}

// measureLoopback returns the round trips of one-byte messages over loopback: system calls and two thread
// switches.
func measureLoopback(ctx context.Context) (trips []time.Duration, err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	answered := make(chan error, 1)
	go func() { answered <- echoConn(l) }()
	defer func() { // the caller's end of the connection is closed by now
		closed := l.Close()
		err = errors.Join(err, <-answered, closed)
	}()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("dial loopback: %w", err), l.Close())
	}
	defer c.Close()
	b := make([]byte, 1)
	for range echoes {
		sent := time.Now()
		if _, err := c.Write(b); err != nil {
			return nil, fmt.Errorf("echo over loopback: %w", err)
		}
		if _, err := io.ReadFull(c, b); err != nil {
			return nil, fmt.Errorf("echo over loopback: %w", err)
		}
		trips = append(trips, time.Since(sent))
	}
	return trips, ctx.Err()
}

func echoConn(l net.Listener) error {
	c, err := l.Accept()
	if err != nil {
		return fmt.Errorf("echo on loopback: %w", err)
	}
	defer c.Close()
	if _, err := io.Copy(c, c); err != nil {
		return fmt.Errorf("echo on loopback: %w", err)
	}
	return nil
}
