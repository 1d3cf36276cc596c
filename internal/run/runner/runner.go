// Package runner runs all trials of an experiment: in the order of the plan, each
// recorded as it ends, so that whatever ends the run keeps what is finished.
package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/base/progress"
	"skerry/internal/database"
	"skerry/internal/experiment"
	"skerry/internal/kernel/realtime"
	"skerry/internal/machine/transport"
	"skerry/internal/record"
	"skerry/internal/run/executor"
	"skerry/internal/run/live"
	"skerry/internal/run/multihost"
	"skerry/internal/run/trial"
)

// failuresInARow end a run: what fails so often will fail again, and each failure may
// take as long as a cluster's patience.
const failuresInARow = 3

// ErrTrials says that a run ended with trials that failed.
var ErrTrials = errors.New("trials failed")

// ErrAssertions says that a run's trials measured, and an assertion did not hold.
var ErrAssertions = errors.New("assertions did not hold")

// ErrSuspect says that a strict run's trials measured, and some with doubt.
var ErrSuspect = errors.New("trials are suspect")

// Config is what a run is started with.
type Config struct {
	Experiment experiment.Experiment
	// Source is the experiment as its author wrote it, and what was set beside it.
	Source record.File
	// Out is the directory that run directories are made in.
	Out       string
	Databases map[string]database.Database
	// From maps a database to an installation other than the one found by itself.
	From              map[string]string
	Exe               string
	StateDir, DataDir string
	Urgent            *realtime.Process // takes priority while it makes events happen; nil: never
	// Lane tells runs of this process that go on side by side apart, Beside is how many others those are,
	// and Turns keep their trials from disturbing each other; nil for a run alone.
	Lane     int
	Beside   int
	Turns    *trial.Turns
	Suspect  bool     // Resume runs suspect trials again
	Strict   bool     // a suspect trial is an error
	Version  string   // of skerry
	Command  []string // the command line
	Progress *progress.Reporter
	Log      *slog.Logger
}

// Run runs an experiment from its first trial on. It returns the run directory's path,
// also beside an error when there is one by then.
func Run(ctx context.Context, c Config) (dir string, err error) {
	r := &run{Config: c}
	if err := r.prepare(ctx); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, r.leave()) }()
	started, err := c.started()
	if err != nil {
		return "", err
	}
	r.writer, err = record.Create(c.Out, started)
	if err != nil {
		return "", err
	}
	return r.writer.Dir(), r.all(ctx)
}

// Resume goes on with a run that was interrupted: with the trials that have not ended ok,
// and where Config.Suspect is set with those that ended suspect.
// The experiment must be the one that the run was started with.
func Resume(ctx context.Context, dir string, c Config) (err error) {
	r := &run{Config: c}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.leave()) }()
	if r.writer, err = record.Resume(dir, c.Suspect); err != nil {
		return err
	}
	if err := samePlan(r.writer.Run().Plan, planned(c.Experiment)); err != nil {
		return errors.Join(err, r.writer.Close())
	}
	if err := sameFiles(r.writer.Run().Files, c.Experiment.Digests()); err != nil {
		return errors.Join(err, r.writer.Close())
	}
	if err := r.sameDatabases(r.writer.Run().Versions.Databases); err != nil {
		return errors.Join(err, r.writer.Close())
	}
	return r.all(ctx)
}

// sameDatabases refuses to mix trials of different versions of a database in one run.
func (r *run) sameDatabases(recorded map[string]string) error {
	for name, was := range recorded {
		if found := r.installed[name].Version; found != was {
			return advice.With(fmt.Errorf("the run was made with %s %s, this is %s", name, was, found),
				"give that build with --from %s=PATH, or start a new run", name)
		}
	}
	return nil
}

// home is the run directory that trials are recorded in.
type home interface {
	OpenTrial(id int) (*record.TrialWriter, error)
}

// run is a run under way.
type run struct {
	Config
	installed map[string]database.Installation // by the key of the experiment's database
	databases map[string]database.Database     // by the same
	cells     map[int]experiment.Cell
	footings  map[int]string           // by the trial's ID
	sharing   map[string]trial.Sharing // by footing
	home      home
	across    *multihost.Machines // labs stand on its machines; nil: on this one
	place     record.TrialMachine // this machine
	writer    *record.Writer      // nil where another process writes the run
	note      func(engine, why string, warnings []string) error
	live      *live.Feed // nil where nobody can look
}

// prepare finds what the trials need, so that what is missing is told before the first.
func (r *run) prepare(ctx context.Context) error {
	r.installed, r.databases = map[string]database.Installation{}, map[string]database.Database{}
	r.cells, r.footings = map[int]experiment.Cell{}, map[int]string{}
	var err error
	if r.place.Machine, err = record.ThisMachine(); err != nil {
		return err
	}
	r.place.Task = os.Getenv(executor.TaskVariable)
	r.place.Name = cmp.Or(os.Getenv(executor.MachineVariable), r.place.Name)
	plan := r.Experiment.Plan()
	r.sharing = sharing(plan)
	for _, cell := range plan {
		r.cells[cell.ID], r.footings[cell.ID] = cell, cell.Experiment.Footing()
		d := cell.Experiment.Database
		if _, ok := r.installed[d.Key()]; ok {
			continue
		}
		db, err := cell.Experiment.Choose(r.Databases)
		if err != nil {
			return err
		}
		found, err := database.Locate(db, d.Version, r.From[d.Label()])
		if err != nil {
			return err
		}
		r.installed[d.Key()], r.databases[d.Key()] = found, db
	}
	if !r.Experiment.Machines.Any() {
		return nil
	}
	file, err := r.Experiment.ReadMachines()
	if err == nil {
		r.across, err = multihost.Of(ctx, file, transport.Options{Exe: r.Exe, Log: r.Log})
	}
	return err
}

// leave lets go of other machines, where labs stand there.
func (r *run) leave() error {
	if r.across == nil {
		return nil
	}
	return r.across.Close()
}

// started is run.json as a run begins with it.
func (c Config) started() (record.Run, error) {
	expanded, err := c.Experiment.JSON()
	if err != nil {
		return record.Run{}, err
	}
	program, err := record.ThisProgram()
	if err != nil {
		return record.Run{}, err
	}
	return record.Run{
		Files: c.Experiment.Digests(),
		Name:  c.Experiment.Name, Description: c.Experiment.Description, Command: c.Command,
		Versions: record.Versions{Skerry: c.Version, Program: program}, Seed: c.Experiment.Seed,
		Experiment: expanded, File: c.Source, Plan: planned(c.Experiment), Warnings: c.Experiment.Notes(c.Databases),
	}, nil
}

// all runs what is left of the plan.
func (r *run) all(ctx context.Context) error {
	r.home, r.note = r.writer, r.observe
	err := r.writer.Update(func(run *record.Run) {
		run.Versions.Databases = map[string]string{}
		for name, found := range r.installed {
			run.Versions.Databases[name] = found.Version
		}
	})
	if err != nil {
		return errors.Join(err, r.writer.Close())
	}
	close := r.show()
	err = r.trials(ctx)
	r.Progress.Done()
	return errors.Join(err, close(), r.writer.Finish())
}

func (r *run) trials(ctx context.Context) error {
	left := r.writer.Remaining()
	l := r.newLanes(left)
	err := errors.Join(l.drive(ctx), l.leave(ctx, l.all[1:]))
	if err == nil {
		err = r.retry(ctx, l.alone())
	}
	if err = errors.Join(err, l.leave(ctx, l.all[:1])); err != nil {
		return err
	}
	if l.failed > 0 {
		return r.failure(l.failed, len(left))
	}
	return errors.Join(r.assertions(), r.doubts())
}

// doubts is which trials are suspect, where none may be.
func (r *run) doubts() error {
	if !r.Strict {
		return nil
	}
	var suspect []string
	for _, t := range r.writer.Summary().Trials {
		if t.State == record.TrialOK && t.Verdict.State == record.Suspect {
			suspect = append(suspect, strconv.Itoa(t.ID))
		}
	}
	if len(suspect) == 0 {
		return nil
	}
	return advice.With(fmt.Errorf("%w: %s", ErrSuspect, strings.Join(suspect, ", ")),
		"run them again with: skerry run --resume %s --suspect --strict", r.writer.Dir())
}

// assertions is what of the experiment's assert did not hold, in trials of earlier attempts too.
func (r *run) assertions() error {
	broken := map[string]bool{}
	for _, t := range r.writer.Summary().Trials {
		for _, a := range t.Assertions {
			if !a.Held {
				broken[a.Text] = true
			}
		}
	}
	if len(broken) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d %w: %s", len(broken), len(r.Experiment.Assert), ErrAssertions, strings.Join(slices.Sorted(maps.Keys(broken)), "; "))
}

// trial makes an attempt at a trial.
func (r *run) trial(ctx context.Context, a *attempt, label string) (record.Trial, error) {
	p, l := a.planned, a.lane
	cell, ok := r.cells[p.ID]
	if !ok {
		return record.Trial{}, fmt.Errorf("trial %d is not in the plan", p.ID)
	}
	w, err := r.home.OpenTrial(p.ID)
	if err != nil {
		return record.Trial{}, err
	}
	key := cell.Experiment.Database.Key()
	at := r.place
	at.Database = r.installed[key].Version
	return trial.Run(ctx, trial.Config{
		Cell: cell, Database: r.databases[key], Installation: r.installed[key],
		Kept: &l.kept, Sharing: r.sharing[r.footings[cell.ID]], Turns: l.turns, Beside: func() int { return r.Beside + int(a.beside.Load()) },
		Name: r.labName(p.ID), Exe: r.Exe, StateDir: r.StateDir, DataDir: r.DataDir,
		Writer: w, Progress: l.progress, Label: label, Log: r.Log, Machine: &at, Observe: r.note, Live: l.live, Number: a.number, Urgent: r.Urgent,
		Across: r.across,
	})
}

// labName is what the lab of a trial is called: no other of this machine is.
func (r *run) labName(id int) string {
	name := fmt.Sprintf("run-%d-%d", os.Getpid(), id)
	if r.Lane > 0 {
		name += fmt.Sprintf("-%d", r.Lane)
	}
	return name
}

// observe keeps which engine made the links and what the machine could not give.
func (r *run) observe(engine, why string, warnings []string) error {
	was := r.writer.Run()
	added := slices.DeleteFunc(slices.Clone(warnings), func(w string) bool { return slices.Contains(was.Warnings, w) })
	if was.Engine.Name == engine && len(added) == 0 {
		return nil
	}
	for _, w := range added {
		r.Progress.Linef("note: %s", w)
	}
	return r.writer.Update(func(run *record.Run) {
		run.Engine, run.Warnings = record.Engine{Name: engine, Why: why}, append(slices.Clone(was.Warnings), added...)
	})
}
