// Package trial runs one trial: a lab and a cluster of its own, or those that the trial
// before has kept, the table loaded, every link measured, the workload driven, and the
// evidence judged.
//
//	lab up ─► cluster ─► load ─► scale ─► probe ─► warm-up ─► measurement ─► verdict ─► lab down
//	                      ▲                                                     │
//	                      └──────────── kept: the table is emptied ◄────────────┘
//
// Each step is a part of its own, which is given what it uses and hands on what it found:
// setup the ground that the others stand on, probing and measuring what they saw, auditing
// what is still there. The verdict is formed from all of that at the end, in one place.
package trial

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"skerry/internal/base/progress"
	"skerry/internal/database"
	"skerry/internal/evidence/assert"
	"skerry/internal/evidence/verdict"
	"skerry/internal/experiment"
	"skerry/internal/kernel/realtime"
	"skerry/internal/lab"
	"skerry/internal/record"
	"skerry/internal/run/live"
	"skerry/internal/run/multihost"
)

// Config is what a trial is given.
type Config struct {
	Cell         experiment.Cell
	Database     database.Database
	Installation database.Installation
	// Kept is where trials that reuse clusters leave theirs to each other; nil where none does.
	Pool *ClusterPool
	// Turns keep this trial from disturbing others that run at the same time; nil where none does.
	Phases *PhaseScheduler
	// Beside, when set, tells at the end how many others ran at the same time, at the most.
	Beside func() int
	// Sharing is of the trials that share the cluster; the zero one where it is this trial's
	// alone.
	Sharing Sharing
	// Name of the lab.
	Name string
	// Exe is the skerry program that agents are started from.
	Exe               string
	StateDir, DataDir string
	Writer            *record.TrialWriter
	Progress          *progress.Reporter
	// Label begins every line of progress ("trial 3 of 8").
	Label string
	Log   *slog.Logger
	// Live hears of the trial as it goes on, nil where nobody can look; Number is how many of
	// the run's trials have ended then, and this one.
	Live   *live.Feed
	Number int
	// Urgent is the process that makes events happen, where it may take priority for that.
	Urgent *realtime.Process
	// Machine is what the trial's record says of where it was measured; nil says nothing.
	Machine *record.TrialMachine
	// Across, when set, has the lab stand on machines of a machines file.
	Machines *multihost.Machines
	// Observe, when set, is told about the lab once it is up; what it says goes into
	// the run's record.
	Observe func(engine, why string, warnings []string) error
}

// Run runs a trial and records it. What went wrong in the trial itself is told by its
// State and Error; an error means that it could not be recorded.
func Run(ctx context.Context, c Config) (record.Trial, error) {
	result := record.Trial{Started: time.Now(), State: record.TrialOK}
	tell := reporter{progress: c.Progress, label: c.Label, live: c.Live, writer: c.Writer}
	tell.beginTrial(c, result.Started)
	err := run(ctx, c, tell, &result)
	var failed recordError
	switch {
	case errors.As(err, &failed):
		return result, errors.Join(err, c.Writer.Abandon())
	case err == nil:
		result.Assertions = assert.All(c.Cell.Experiment.Assert, result)
	case ctx.Err() != nil:
		result.State, result.Error = record.TrialInterrupted, "interrupted"
	default:
		result.State, result.Error = record.TrialFailed, err.Error()
	}
	if c.Beside != nil {
		result.Beside = c.Beside()
	}
	if err := c.Writer.Finish(result); err != nil {
		return result, errors.Join(err, c.Writer.Abandon())
	}
	tell.endTrial(c.Cell.ID, result)
	return result, nil
}

// labMachine is what a trial's record says of the machine with its lab.
func labMachine(on *record.TrialMachine, l *lab.Lab) *record.TrialMachine {
	if on == nil {
		return nil
	}
	at := *on
	at.Engine.Name, at.Engine.Why = l.Engine()
	at.Warnings, at.Settings = l.Warnings(), l.Settings()
	return &at
}

// recordError is a failure to write to the run directory: it ends the run, not the trial.
type recordError struct{ error }

func (e recordError) Unwrap() error { return e.error }

// run goes through the parts of a trial, in order, and ends what the first of them made.
func run(ctx context.Context, c Config, tell reporter, result *record.Trial) (err error) {
	e := c.Cell.Experiment
	work, guard := newGuard(ctx)
	g := newEnvironment(c.Database, e, c.Phases)
	turn := &trialPhase{scheduler: c.Phases}
	defer turn.leave()
	if err := turn.enterSetUp(work); err != nil {
		return guard.finish(work, nil, err)
	}
	defer func() {
		err = guard.finish(work, g.lab, err)
		if err == nil && c.Pool.release(c.Cell, g) {
			err = g.keepLogs(ctx, c.Writer)
			return
		}
		tell.setStage("taking the lab down")
		err = errors.Join(err, g.tearDown(ctx, c.Writer))
	}()
	drv, err := newSetup(c, tell, guard).prepare(work, g)
	result.ClusterOf = g.madeBy
	if err != nil {
		return err
	}
	c.Phases.addLab(g.lab)
	result.Machine = labMachine(c.Machine, g.lab)
	if turn.scheduler != nil {
		tell.setStage("waiting for others to set up")
	}
	if err := turn.enterProbe(work); err != nil {
		return err
	}
	result.Load = loadRecord(g.lab, g.loaded)
	tell.setStage("probing the links")
	links, err := probeLinks(work, g.lab)
	if err != nil {
		return err
	}
	tell.publishRTTs(links)
	if turn.scheduler != nil {
		tell.setStage("waiting for others to probe their links")
	}
	if err := turn.enterMeasure(work); err != nil {
		return err
	}
	result.SetupS = (time.Since(result.Started) - turn.waited).Seconds()
	governor, flavors := newGovernor(g.lab, c.Cell.Seed)
	guard.runGovernor(work, governor)
	m, err := newMeasuring(c, tell, g, drv, governor).measure(work)
	err = errors.Join(err, turn.enterSetUp(work)) // what follows is no measurement
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
	audited, err := auditor{cell: c.Cell, env: g, driver: drv, report: tell}.audit(work)
	if err != nil {
		return err
	}
	result.Audit = audited
	f := findings{links: links, moved: g.lab.Ended() != nil, flavors: flavors, measurement: m, bound: limit, audit: audited}
	result.Verdict = verdict.Judge(f.evidence(e), newLimits(e))
	result.Verdict.Notes = append(result.Verdict.Notes, e.DriftNotes(time.Duration(result.DurationS*float64(time.Second)))...)
	result.Verdict.Notes = append(result.Verdict.Notes, e.Overridden(g.cluster.Properties())...)
	result.Verdict.Notes = append(result.Verdict.Notes, keyNotes(m.drive)...)
	return nil
}
