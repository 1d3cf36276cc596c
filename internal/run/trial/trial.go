// Package trial runs one trial: it sets up a lab and a cluster or takes them from a pool, loads the table,
// probes every link, drives the workload, and judges the evidence.
//
//	lab up ─► cluster ─► load ─► scale ─► probe ─► warm-up ─► measurement ─► verdict ─► lab down
//	                      ▲                                                     │
//	                      └──────── pool: the table is emptied ◄────────────────┘
//
// Set-up: setup.go, environment.go, table.go, driver.go, phases.go, guard.go, linkprobe.go.
// Measurement: measure.go, events.go, snapshot.go, network.go, pools.go, timeline.go.
// Judgement: evidence.go, bottleneck.go, audit.go, summary.go.
package trial

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"skerry/internal/base/progress"
	"skerry/internal/database"
	"skerry/internal/evidence/verdict"
	"skerry/internal/experiment"
	"skerry/internal/kernel/realtime"
	"skerry/internal/record"
	"skerry/internal/record/metric"
	"skerry/internal/run/live"
	"skerry/internal/run/multihost"
)

// Config configures a trial.
type Config struct {
	Cell         experiment.Cell
	Database     database.Database
	Installation database.Installation
	// Installed are the installations that trials of the run need, by key; upgrades use them.
	Installed map[string]database.Installation
	// Pool receives the cluster after the trial if the experiment reuses clusters; nil disables reuse.
	Pool *ClusterPool
	// Phases coordinates concurrent trials; nil if the trial runs alone.
	Phases *PhaseScheduler
	// Beside returns the highest number of concurrent trials so far. May be nil.
	Beside func() int
	// Sharing describes the trials that share the cluster; the zero value means none.
	Sharing Sharing
	// Name of the lab.
	Name string
	// Exe is the skerry program that starts agents.
	Exe               string
	StateDir, DataDir string
	Writer            *record.TrialWriter
	Progress          *progress.Reporter
	// Label prefixes every progress line ("trial 3 of 8").
	Label string
	Log   *slog.Logger
	// Live receives the live state; may be nil. Number counts the run's ended trials plus this one.
	Live   *live.Feed
	Number int
	// Urgent is the process that runs events and may raise its priority.
	Urgent *realtime.Process
	// Machine describes where the trial is measured; nil omits it from the record.
	Machine *record.TrialMachine
	// Machines, if set, are the hosts of the lab's nodes.
	Machines *multihost.Machines
	// Observe, if set, is called once the lab is up.
	Observe func(engine, why string, warnings []string) error
}

// Run runs a trial and records it. A failure of the trial is in the record's State and Error; an error
// means that the trial could not be recorded.
func Run(ctx context.Context, c Config) (record.Trial, error) {
	result := record.Trial{Started: time.Now(), State: record.TrialOK}
	report := reporter{progress: c.Progress, label: c.Label, live: c.Live, writer: c.Writer}
	report.beginTrial(c, result.Started)
	err := run(ctx, c, report, &result)
	var failed recordError
	switch {
	case errors.As(err, &failed):
		return result, errors.Join(err, c.Writer.Abandon())
	case err == nil:
		result.Assertions = metric.CheckAssertions(c.Cell.Experiment.Assert, result)
	case ctx.Err() != nil:
		result.State, result.Error = record.TrialInterrupted, "interrupted"
	default:
		result.State, result.Error = record.TrialFailed, err.Error()
	}
	if c.Beside != nil {
		result.Concurrent = c.Beside()
	}
	if err := c.Writer.Finish(result); err != nil {
		return result, errors.Join(err, c.Writer.Abandon())
	}
	report.endTrial(c.Cell.ID, result)
	return result, nil
}

// labMachine adds the lab's engine, warnings and settings to the machine's description, and the version that the servers
// of a cluster report that Skerry did not start.
func labMachine(on *record.TrialMachine, g *environment) *record.TrialMachine {
	if on == nil {
		return nil
	}
	at, l := *on, g.lab
	if c := g.externalCluster(); c != nil {
		at.Database = c.Version()
	}
	at.Engine.Name, at.Engine.Why = l.Engine()
	at.Warnings, at.Settings = l.Warnings(), l.Settings()
	return &at
}

// recordError is a failure to write to the run directory: it ends the run, not only the trial.
type recordError struct{ error }

func (e recordError) Unwrap() error { return e.error }

// run executes the parts of a trial in order and releases the environment.
func run(ctx context.Context, c Config, report reporter, result *record.Trial) (err error) {
	e := c.Cell.Experiment
	work, guard := newGuard(ctx)
	g := newEnvironment(c.Database, e, c.Phases)
	phase := &trialPhase{scheduler: c.Phases}
	defer phase.leave()
	if err := phase.enterSetUp(work); err != nil {
		return guard.finish(work, nil, err)
	}
	defer func() {
		err = guard.finish(work, g.lab, err)
		if err == nil && c.Pool.release(c.Cell, g) {
			err = g.keepLogs(ctx, c.Writer)
			return
		}
		report.setStage(g.removal())
		err = errors.Join(err, g.tearDown(ctx, c.Writer))
	}()
	drv, err := newSetup(c, report, guard).prepare(work, g)
	result.ClusterOf = g.madeBy
	if err != nil {
		return err
	}
	c.Phases.addLab(g.lab)
	result.Machine = labMachine(c.Machine, g)
	if phase.scheduler != nil {
		report.setStage("waiting for other trials to set up")
	}
	if err := phase.enterProbe(work); err != nil {
		return err
	}
	result.Load = loadRecord(g.lab, g.loaded)
	report.setStage(g.probing())
	links, err := g.probe(work, e.ClientNode())
	if err != nil {
		return err
	}
	report.publishRTTs(links)
	if phase.scheduler != nil {
		report.setStage("waiting for other trials to probe their links")
	}
	if err := phase.enterMeasure(work); err != nil {
		return err
	}
	result.SetupS = (time.Since(result.Started) - phase.waited).Seconds()
	governor, flavors := newGovernor(g.lab, c.Cell.Seed)
	guard.runGovernor(work, governor)
	m, err := newMeasuring(c, report, g, drv, governor).measure(work)
	err = errors.Join(err, phase.enterSetUp(work)) // the measurement is over
	if err != nil {
		return err
	}
	summarise(result, e, g.lab, m, c.Writer.Events())
	limit := throughputBound(e, g.lab, m)
	result.LatencyBound = latencyBound(e, g.lab, m)
	result.Bound, result.Fidelity = &limit, newFidelity(g.lab, links, m)
	if err := writeFiles(c.Writer, m); err != nil {
		return err
	}
	audited, err := auditor{cell: c.Cell, env: g, driver: drv, report: report}.audit(work)
	if err != nil {
		return err
	}
	result.Audit = audited
	f := findings{links: links, moved: g.lab.EmulatorDone() != nil, flavors: flavors, measurement: m, bound: limit, audit: audited}
	result.Verdict = verdict.Judge(f.evidence(e), newLimits(e))
	result.Verdict.Notes = append(result.Verdict.Notes, e.DriftNotes(time.Duration(result.DurationS*float64(time.Second)))...)
	result.Verdict.Notes = append(result.Verdict.Notes, e.OverriddenSettings(g.cluster.Properties())...)
	result.Verdict.Notes = append(result.Verdict.Notes, keyNotes(m.drive)...)
	if own := g.externalCluster(); own != nil {
		result.Verdict.Notes = append(result.Verdict.Notes, own.Notes()...)
	}
	return nil
}
