package runner

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"skerry/internal/database"
	"skerry/internal/experiment"
	"skerry/internal/record"
	"skerry/internal/run/live"
)

// RemoteRun is a run whose trials are measured elsewhere and recorded by this process. The databases need
// not be installed here.
type RemoteRun struct {
	run
	total   int
	at      map[int]int // index in the plan, by trial
	slowest time.Duration
}

// CreateRemote creates the directory of a run.
func CreateRemote(c Config) (*RemoteRun, error) {
	o := newRemoteRun(c)
	started, err := c.newRecord()
	if err != nil {
		return nil, err
	}
	o.writer, err = record.Create(c.Out, started)
	if err != nil {
		return nil, err
	}
	o.index(started.Plan)
	return o, nil
}

// ResumeRemote opens the run in dir and collects results. The experiment must be the run's.
func ResumeRemote(dir string, c Config) (*RemoteRun, error) {
	o := newRemoteRun(c)
	var err error
	if o.writer, err = record.Resume(dir, c.Suspect); err != nil {
		return nil, err
	}
	run := o.writer.Run()
	o.index(run.Plan)
	for t := range o.writer.Trials {
		o.slowest = max(o.slowest, trialTime(*t))
	}
	if err := errors.Join(checkPlan(run.Plan, planTrials(c.Experiment)), checkFiles(run.Files, c.Experiment.FileDigests())); err != nil {
		return nil, errors.Join(err, o.writer.Close())
	}
	return o, nil
}

func newRemoteRun(c Config) *RemoteRun {
	o := &RemoteRun{run: run{Config: c, cells: map[int]experiment.Cell{}}}
	for _, cell := range c.Experiment.Plan() {
		o.cells[cell.ID] = cell
	}
	return o
}

func (o *RemoteRun) index(plan []record.Planned) {
	o.total, o.at = len(plan), make(map[int]int, len(plan))
	for i, p := range plan {
		o.at[p.ID] = i
	}
}

func (o *RemoteRun) Writer() *record.Writer { return o.writer }

const maxLiveTrials = 10_000

// OpenFeed publishes the run until close is called; feed may be nil.
func (o *RemoteRun) OpenFeed() (feed *live.Feed, close func() error) {
	if o.total > maxLiveTrials {
		return nil, func() error { return nil }
	}
	close = o.openFeed()
	return o.live, close
}

// trialTime returns the duration of a trial without its tear-down.
func trialTime(t record.Trial) time.Duration {
	return time.Duration((t.SetupS + t.WarmupS + t.DurationS) * float64(time.Second))
}

// ReportTrial prints and publishes the result of a trial, the done-th one.
func (o *RemoteRun) ReportTrial(t record.Trial, done int) {
	o.slowest = max(o.slowest, trialTime(t))
	o.report(fmt.Sprintf("%*d/%d", len(fmt.Sprint(o.total)), done, o.total), o.writer.Run().Plan[o.at[t.ID]], t)
	o.live.EndTrial(t)
}

// RecordMachine stores in run.json what the first result reveals about the workers: the link engine, and
// the versions of databases that are not installed here.
func (o *RemoteRun) RecordMachine(t record.Trial) error {
	if t.Machine == nil {
		return nil
	}
	if o.writer.Run().Engine.Name == "" {
		if err := o.writer.Update(func(r *record.Run) {
			r.Engine, r.Warnings = t.Machine.Engine, append(slices.Clone(r.Warnings), t.Machine.Warnings...)
		}); err != nil {
			return err
		}
	}
	return o.recordVersion(o.cells[t.ID].Experiment.Database.Key(), t)
}

// RetryTrials returns the suspect trials that are worth a retry.
func (o *RemoteRun) RetryTrials() []record.Planned {
	again := map[int]bool{}
	for _, t := range o.writer.Summary().Trials {
		again[t.ID] = worthRetry(t) && len(t.Replaced) < o.Experiment.Retries
	}
	return slices.DeleteFunc(slices.Clone(o.writer.Run().Plan), func(p record.Planned) bool { return !again[p.ID] })
}

// Outcome returns ErrTrials, ErrAssertions or ErrSuspect after all trials have ended.
func (o *RemoteRun) Outcome() error {
	trials, failed := o.writer.Summary().Trials, 0
	for _, t := range trials {
		if t.State == record.TrialFailed {
			failed++
		}
	}
	if failed > 0 {
		return o.failedError(failed, len(trials))
	}
	return errors.Join(o.assertionError(), o.suspectError())
}

// ExpectedTime returns the expected duration of consecutive trials on one lab, from the slowest trial so
// far or the experiment's times; 0 if unknown.
func (o *RemoteRun) ExpectedTime(trials []record.Planned) time.Duration {
	if o.slowest > 0 {
		return o.slowest * time.Duration(len(trials))
	}
	var sum time.Duration
	for i, p := range trials {
		e := o.cells[p.ID].Experiment
		if i == 0 || !e.Reuse {
			sum += e.FormationTime()
		}
		d, known := e.TrialTime()
		if !known {
			return 0
		}
		sum += d
	}
	return sum
}

// MemoryBytes returns the memory limit of the nodes of a trial's lab, 0 if any has none.
func (o *RemoteRun) MemoryBytes(id int) (sum int64) {
	cloud, err := o.cells[id].Experiment.Cloud()
	if err != nil {
		return 0
	}
	for _, n := range cloud.Nodes {
		if n.Memory == 0 {
			return 0
		}
		sum += n.Memory
	}
	return sum
}

// RecordVersions stores the versions of the databases that are installed here. Workers must use the same
// ones.
func (o *RemoteRun) RecordVersions() error {
	versions, asked := map[string]string{}, map[string]bool{}
	for _, cell := range o.cells {
		d := cell.Experiment.Database
		db, err := cell.Experiment.ResolveDatabase(o.Databases)
		if err != nil {
			return err
		}
		from := map[string]string{d.Key(): o.From[d.Label()]}
		for key, version := range cell.Experiment.Installations() {
			if asked[key] {
				continue
			}
			asked[key] = true
			if found, err := database.Locate(db, version, from[key]); err == nil {
				versions[key] = found.Version
			}
		}
	}
	return o.writer.Update(func(r *record.Run) { r.Versions.Databases = versions })
}
