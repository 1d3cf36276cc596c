// Package trial runs one trial: a lab and a cluster of its own, or those that the trial
// before has kept, the table loaded, every link measured, the workload driven, and the
// evidence judged.
//
//	lab up ─► cluster ─► load ─► scale ─► probe ─► warm-up ─► measurement ─► verdict ─► lab down
//	                      ▲                                                     │
//	                      └──────────── kept: the table is emptied ◄────────────┘
package trial

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"skerry/internal/assert"
	"skerry/internal/database"
	"skerry/internal/event"
	"skerry/internal/experiment"
	"skerry/internal/flavor"
	"skerry/internal/lab"
	"skerry/internal/live"
	"skerry/internal/progress"
	"skerry/internal/record"
)

// tearDownTime bounds the end of a trial: stopping the cluster, keeping logs, taking
// the lab down. It counts from the end of the measurement or its cancellation.
const tearDownTime = 60 * time.Second

// answerTime bounds how long the emulator may take to say that it runs; it takes
// milliseconds where the machine is not very busy.
const answerTime = 5 * time.Second

// Config is what a trial is given.
type Config struct {
	Cell         experiment.Cell
	Database     database.Database
	Installation database.Installation
	// Kept is where trials that reuse clusters leave theirs to each other; nil where none does.
	Kept *Kept
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
	// Observe, when set, is told about the lab once it is up; what it says goes into
	// the run's record.
	Observe func(engine, why string, warnings []string) error
}

// Run runs a trial and records it. What went wrong in the trial itself is told by its
// State and Error; an error means that it could not be recorded.
func Run(ctx context.Context, c Config) (record.Trial, error) {
	result := record.Trial{Started: time.Now(), State: record.TrialOK}
	r := &run{Config: c, result: &result}
	r.beginLive()
	err := r.do(ctx)
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
	if err := c.Writer.Finish(result); err != nil {
		return result, errors.Join(err, c.Writer.Abandon())
	}
	r.resultLive()
	return result, nil
}

// recordError is a failure to write to the run directory: it ends the run, not the trial.
type recordError struct{ error }

func (e recordError) Unwrap() error { return e.error }

// run is a trial under way.
type run struct {
	Config
	result  *record.Trial
	lab     *lab.Lab
	cluster database.Cluster
	world   *event.World            // what events act on
	abort   context.CancelCauseFunc // ends the work of the trial, not the run's
	watcher sync.WaitGroup
	// governor makes nodes obey their flavors; nil where none changes with time.
	governor *flavor.Governor
	// logged is how much of each of the cluster's logs is of earlier trials, in bytes.
	logged map[string]int64
}

// errEmulator is why a trial ends whose emulator has died.
var errEmulator = errors.New("the link emulator has ended")

// errGovernor is why a trial ends whose nodes cannot be held to their flavors.
var errGovernor = errors.New("the flavor of a node cannot be enforced")

func (r *run) do(ctx context.Context) (err error) {
	work, abort := context.WithCancelCause(ctx)
	r.abort = abort
	defer func() {
		if errors.Is(context.Cause(work), errEmulator) || err != nil && r.emulatorEnded() {
			err = errors.Join(errEmulator, err) // all else follows from it
		}
		if cause := context.Cause(work); errors.Is(cause, errGovernor) {
			err = errors.Join(cause, err)
		}
		abort(nil)
		r.watcher.Wait()
		if err == nil && r.keep() {
			err = r.keepLogs()
			return
		}
		err = errors.Join(err, r.tearDown(ctx))
	}()
	if err := r.setUp(work); err != nil {
		return err
	}
	r.stage("probing the links")
	fidelity, err := r.probe(work)
	if err != nil {
		return err
	}
	r.probedLive(fidelity)
	r.result.SetupS = time.Since(r.result.Started).Seconds()
	r.govern(work)
	m, err := r.measure(work)
	if err != nil {
		return err
	}
	if err := r.summarise(m, fidelity); err != nil {
		return err
	}
	return r.audit(work, m)
}

// watchEmulator ends the trial's work when the process that moves its packets ends.
func (r *run) watchEmulator(ctx context.Context) {
	r.watcher.Go(func() {
		select {
		case <-r.lab.Ended():
			r.abort(errEmulator)
		case <-ctx.Done():
		}
	})
}

// emulatorEnded asks the emulator whether it still runs. Without it the nodes lose their
// devices, of which a client or a server may tell before the end of the process is known.
func (r *run) emulatorEnded() bool {
	if r.lab == nil || r.lab.Ended() == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	if _, err := r.lab.Lateness(ctx, false); err == nil {
		return false
	}
	select {
	case <-r.lab.Ended():
		return true
	case <-ctx.Done():
		return false
	}
}

// tearDown ends whatever setUp made, in the reverse order, even when ctx has ended.
func (r *run) tearDown(ctx context.Context) error {
	r.stage("taking the lab down")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tearDownTime)
	defer cancel()
	var errs []error
	if r.cluster != nil {
		if err := r.cluster.Stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", r.Database.Name(), err))
		}
		errs = append(errs, r.keepLogs())
	}
	if r.lab != nil {
		if err := r.lab.Down(ctx); err != nil {
			errs = append(errs, fmt.Errorf("taking the lab down: %w", err))
		}
	}
	return errors.Join(errs...)
}

// keepLogs keeps what the cluster has logged during the trial.
func (r *run) keepLogs() error {
	if err := r.Writer.Logs(r.cluster.Logs(), r.logged); err != nil {
		return recordError{err}
	}
	return nil
}

// stage tells a person what the trial is at.
func (r *run) stage(what string) {
	r.Progress.Livef("%s: %s", r.Label, what)
	r.Live.Stage(what)
}

// event records something that happened, at t seconds of the measurement.
func (r *run) event(t float64, kind, message string) error {
	if err := r.Writer.Event(record.Event{T: t, Kind: kind, Message: message}); err != nil {
		return recordError{err}
	}
	return nil
}
