// Package runner runs all trials of an experiment in the order of its plan. It records each trial when it
// ends, so that an interrupted run keeps its results and can be resumed.
package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/base/progress"
	"skerry/internal/database"
	"skerry/internal/database/external"
	"skerry/internal/experiment"
	"skerry/internal/kernel/realtime"
	"skerry/internal/machine/files"
	"skerry/internal/machine/transport"
	"skerry/internal/record"
	"skerry/internal/run/executor"
	"skerry/internal/run/live"
	"skerry/internal/run/multihost"
	"skerry/internal/run/trial"
)

// failuresInARow ends a run: further trials would fail too, and each may take as long as a cluster's
// timeout.
const failuresInARow = 3

var ErrTrials = errors.New("trials failed")

// ErrAssertions means that all trials measured and an assertion did not hold.
var ErrAssertions = errors.New("assertions did not hold")

// ErrSuspect means that trials of a strict run are suspect.
var ErrSuspect = errors.New("trials are suspect")

// Config configures a run.
type Config struct {
	Experiment experiment.Experiment
	// Source is the experiment file, and what the command line overrides.
	Source record.File
	// Out is the parent of run directories.
	Out       string
	Databases map[string]database.Database
	// From maps a database to an installation.
	From              map[string]string
	Exe               string
	StateDir, DataDir string
	Urgent            *realtime.Process // Urgent raises its priority for events; may be nil.
	// Lane is unique among concurrent runs of this process, Beside is the number of the others, and Phases
	// coordinates their trials; zero for a single run.
	Lane     int
	Beside   int
	Phases   *trial.PhaseScheduler
	Suspect  bool     // Resume repeats suspect trials
	Strict   bool     // a suspect trial is an error
	Version  string   // of skerry
	Command  []string // the command line
	Progress *progress.Reporter
	Log      *slog.Logger
}

// Run runs an experiment. It returns the run directory's path, also with an error if it exists by then.
func Run(ctx context.Context, c Config) (dir string, err error) {
	r := &run{Config: c}
	if err := r.prepare(ctx); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, r.closeMachines()) }()
	started, err := c.newRecord()
	if err != nil {
		return "", err
	}
	r.writer, err = record.Create(c.Out, started)
	if err != nil {
		return "", err
	}
	return r.writer.Dir(), r.runPlan(ctx)
}

// Resume continues an interrupted run with the trials that did not end ok and, if Config.Suspect is set,
// the suspect ones. The experiment must be the run's.
func Resume(ctx context.Context, dir string, c Config) (err error) {
	r := &run{Config: c}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.closeMachines()) }()
	if r.writer, err = record.Resume(dir, c.Suspect); err != nil {
		return err
	}
	if err := checkPlan(r.writer.Run().Plan, planTrials(c.Experiment)); err != nil {
		return errors.Join(err, r.writer.Close())
	}
	if err := checkFiles(r.writer.Run().Files, c.Experiment.FileDigests()); err != nil {
		return errors.Join(err, r.writer.Close())
	}
	if err := r.checkDatabases(r.writer.Run().Versions.Databases); err != nil {
		return errors.Join(err, r.writer.Close())
	}
	return r.runPlan(ctx)
}

func (r *run) checkDatabases(recorded map[string]string) error {
	for name, was := range recorded {
		// Servers of a cluster that Skerry did not start report their version in each trial.
		if found := r.installed[name].Version; found != was && found != external.UnknownVersion {
			return advice.With(fmt.Errorf("the run uses %s %s, found %s", name, was, found),
				"pass that version with --from %s=PATH, or start a new run", name)
		}
	}
	return nil
}

type trialOpener interface {
	OpenTrial(id int) (*record.TrialWriter, error)
}

type run struct {
	Config
	installed   map[string]database.Installation // by database key
	databases   map[string]database.Database     // by database key
	cells       map[int]experiment.Cell
	clusterKeys map[int]string           // by trial ID
	sharing     map[string]trial.Sharing // by cluster key
	opener      trialOpener
	machines    *multihost.Machines // hosts of labs; nil for this machine
	machine     record.TrialMachine // this machine
	writer      *record.Writer      // nil if another process writes the run
	onLab       func(engine, why string, warnings []string) error
	live        *live.Feed // nil without followers
}

// prepare finds what the trials need, so that missing programs are reported before the first one.
func (r *run) prepare(ctx context.Context) error {
	r.installed, r.databases = map[string]database.Installation{}, map[string]database.Database{}
	r.cells, r.clusterKeys = map[int]experiment.Cell{}, map[int]string{}
	var err error
	if r.machine.Machine, err = record.DescribeMachine(); err != nil {
		return err
	}
	r.machine.Task = os.Getenv(executor.TaskVariable)
	r.machine.Name = cmp.Or(os.Getenv(executor.MachineVariable), r.machine.Name)
	plan := r.Experiment.Plan()
	r.sharing = clusterSharing(plan)
	for _, cell := range plan {
		r.cells[cell.ID], r.clusterKeys[cell.ID] = cell, cell.Experiment.ClusterKey()
		d := cell.Experiment.Database
		db, err := cell.Experiment.ResolveDatabase(r.Databases)
		if err != nil {
			return err
		}
		r.databases[d.Key()] = db
		from := map[string]string{d.Key(): r.From[d.Label()]}
		for key, version := range cell.Experiment.Installations() {
			if _, ok := r.installed[key]; ok {
				continue
			}
			if r.installed[key], err = database.Locate(db, version, from[key]); err != nil {
				return err
			}
		}
	}
	if !r.Experiment.Machines.IsSet() {
		return nil
	}
	file, err := r.Experiment.ReadMachines()
	if err == nil {
		r.machines, err = multihost.Open(ctx, file, transport.Options{Exe: r.Exe, Log: r.Log})
	}
	return err
}

func (r *run) closeMachines() error {
	if r.machines == nil {
		return nil
	}
	return r.machines.Close()
}

func (c Config) newRecord() (record.Run, error) {
	expanded, err := c.Experiment.JSON()
	if err != nil {
		return record.Run{}, err
	}
	program, err := files.SHA256("/proc/self/exe") // the running program, even if its file was replaced
	if err != nil {
		return record.Run{}, err
	}
	return record.Run{
		Files: c.Experiment.FileDigests(),
		Name:  c.Experiment.Name, Description: c.Experiment.Description, Command: c.Command,
		Versions: record.Versions{Skerry: c.Version, Program: program}, Seed: c.Experiment.Seed,
		Experiment: expanded, File: c.Source, Plan: planTrials(c.Experiment), Warnings: c.Experiment.UnusedSettings(c.Databases),
	}, nil
}

func (r *run) runPlan(ctx context.Context) error {
	r.opener, r.onLab = r.writer, r.recordLab
	err := r.writer.Update(func(run *record.Run) {
		was := run.Versions.Databases
		run.Versions.Databases = map[string]string{}
		for name, found := range r.installed {
			run.Versions.Databases[name] = found.Version
			if found.Version == external.UnknownVersion { // trials of an earlier attempt may have asked
				run.Versions.Databases[name] = cmp.Or(was[name], found.Version)
			}
		}
	})
	if err != nil {
		return errors.Join(err, r.writer.Close())
	}
	close := r.openFeed()
	err = r.runTrials(ctx)
	r.Progress.Done()
	return errors.Join(err, close(), r.writer.Finish())
}

func (r *run) runTrials(ctx context.Context) error {
	left := r.writer.Remaining()
	l := r.newLanes(left)
	err := errors.Join(l.runAll(ctx), l.closePools(ctx, l.all[1:]))
	if err == nil {
		err = r.retrySuspect(ctx, l.soleLane())
	}
	if err = errors.Join(err, l.closePools(ctx, l.all[:1])); err != nil {
		return err
	}
	if l.failed > 0 {
		return r.failedError(l.failed, len(left))
	}
	return errors.Join(r.assertionError(), r.suspectError())
}

func (r *run) suspectError() error {
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
		"retry them with: skerry run --resume %s --suspect --strict", r.writer.Dir())
}

// assertionError lists the assertions that did not hold, including trials of earlier attempts.
func (r *run) assertionError() error {
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
	return fmt.Errorf(
		"%d of %d %w: %s", len(broken), len(r.Experiment.Assert), ErrAssertions,
		strings.Join(slices.Sorted(maps.Keys(broken)), "; "),
	)
}

func (r *run) runTrial(ctx context.Context, a *attempt, label string) (record.Trial, error) {
	p, l := a.planned, a.lane
	cell, ok := r.cells[p.ID]
	if !ok {
		return record.Trial{}, fmt.Errorf("trial %d is not in the plan", p.ID)
	}
	w, err := r.opener.OpenTrial(p.ID)
	if err != nil {
		return record.Trial{}, err
	}
	key := cell.Experiment.Database.Key()
	at := r.machine
	at.Database = r.installed[key].Version
	t, err := trial.Run(ctx, trial.Config{
		Cell: cell, Database: r.databases[key], Installation: r.installed[key], Installed: r.installed,
		Pool: &l.pool, Sharing: r.sharing[r.clusterKeys[cell.ID]], Phases: l.phases, Beside: func() int {
			return r.Beside +
				int(a.beside.Load())
		},
		Name: r.labName(p.ID), Exe: r.Exe, StateDir: r.StateDir, DataDir: r.DataDir,
		Writer: w, Progress: l.progress, Label: label, Log: r.Log, Machine: &at, Observe: r.onLab,
		Live: l.live, Number: a.number, Urgent: r.Urgent,
		Machines: r.machines,
	})
	if err == nil && at.Database == external.UnknownVersion && r.writer != nil {
		err = r.recordVersion(key, t)
	}
	return t, err
}

// recordVersion adds the version that a trial's servers reported to the run. It lists the versions of several trials.
func (r *run) recordVersion(key string, t record.Trial) error {
	if t.Machine == nil {
		return nil
	}
	was := r.writer.Run().Versions.Databases
	versions := strings.Split(was[key], versionSeparator)
	if slices.Contains(append(versions, "", external.UnknownVersion), t.Machine.Database) {
		return nil
	}
	if was[key] == "" || was[key] == external.UnknownVersion {
		versions = nil
	}
	return r.writer.Update(func(run *record.Run) {
		run.Versions.Databases = map[string]string{}
		maps.Copy(run.Versions.Databases, was)
		run.Versions.Databases[key] = strings.Join(append(versions, t.Machine.Database), versionSeparator)
	})
}

// versionSeparator separates the versions of trials; a comma separates those of servers in one trial.
const versionSeparator = "; "

func (r *run) labName(id int) string {
	name := fmt.Sprintf("run-%d-%d", os.Getpid(), id)
	if r.Lane > 0 {
		name += fmt.Sprintf("-%d", r.Lane)
	}
	return name
}

func (r *run) recordLab(engine, why string, warnings []string) error {
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

// openFeed publishes the run until close is called. A run whose file system has no sockets continues
// without followers.
func (r *run) openFeed() (close func() error) {
	run := r.writer.Run()
	feed := live.New(live.Run{
		Name: filepath.Base(
			r.writer.Dir(),
		), Experiment: run.Name, Description: run.Description, Planned: len(run.Plan), Version: run.Versions.Skerry,
	}, r.writer.Summary().Trials...)
	socket, err := live.Listen(r.writer.Dir(), feed, r.Log)
	if err != nil {
		r.Progress.Linef("note: the dashboard cannot follow this run: %v", err)
		return func() error { return nil }
	}
	r.live = feed
	return socket.Close
}
