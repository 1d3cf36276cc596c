package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// attemptsDir holds what is measured for a run by others than its writer:
//
//	attempts/17-0-host-x.partial  ─ended─►  attempts/17-0-host-x  ─first one─►  trials/17
//	                                              │
//	                                              └ failed, or a trial again: Writer.Collect decides
//
// The number behind the trial's is the round: how many results of the trial were replaced when the
// attempt began.
const attemptsDir = "attempts"

// Work is a run directory, or a copy of its plan, as somebody sees it who measures trials for it and is not its
// writer. It needs no lock, which excludes nobody over a network file system, and never writes
// run.json or summary.json. Several may work on the same trial, also when one of them is thought
// dead and is not:
//
//  1. Attempt A and attempt B each write a directory of their own name, so neither sees half of the other.
//  2. A ends and renames its directory to trials/17, which no directory that is there already lets happen: the
//     result is A's, whole.
//  3. B ends later. Its rename is refused, and B removes its own directory. Nothing of A's has changed, so
//     what the writer has read of A is what stands there.
type Work struct {
	dir  string
	run  Run
	name string // of this machine, in those of attempts
}

// OpenWork opens a run directory to measure trials for it.
func OpenWork(dir string) (*Work, error) {
	d := Dir{Path: dir}
	if err := d.readRun(); err != nil {
		return nil, fmt.Errorf("opening run %s: %w", dir, err)
	}
	name, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("asking for this machine's name: %w", err)
	}
	for _, sub := range []string{trialsDir, attemptsDir} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, fmt.Errorf("opening run %s: %w", dir, full(err, dir))
		}
	}
	return &Work{dir: dir, run: d.Run, name: fileName(name)}, nil
}

// Dir is the run directory.
func (w *Work) Dir() string { return w.dir }

// Run is what run.json holds.
func (w *Work) Run() Run { return w.run }

// Result is the result that stands for a trial, nil where there is none.
func (w *Work) Result(id int) (*Trial, error) { return standing(w.dir, id) }

// standing is the trial whose directory has its final name.
func standing(dir string, id int) (*Trial, error) {
	var t Trial
	err := readJSON(filepath.Join(trialDir(dir, id), trialFile), "", &t)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the result of trial %d: %w", id, err)
	}
	return &t, nil
}

// round is which attempt the next one is: one that follows a result which measured is not the first.
func round(standing *Trial) int {
	if standing == nil || standing.State != TrialOK {
		return 0
	}
	return len(standing.Replaced) + 1
}

// OpenTrial begins an attempt at a planned trial.
func (w *Work) OpenTrial(id int) (*TrialWriter, error) {
	planned, err := find(w.run.Plan, id)
	if err != nil {
		return nil, fmt.Errorf("opening trial %d: %w", id, err)
	}
	was, err := w.Result(id)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Join(w.dir, attemptsDir), fmt.Sprintf("%d-%d-%s-*%s", id, round(was), w.name, partial))
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("opening trial %d: %w", id, full(err, w.dir))
	}
	return beginTrial(w, planned, dir)
}

// finish makes an attempt whole, and the trial's result where it measured and is the first. What
// was interrupted leaves nothing.
func (w *Work) finish(dir string, trial Trial) error {
	if trial.State == TrialInterrupted {
		return os.RemoveAll(dir)
	}
	done := strings.TrimSuffix(dir, partial)
	trial.Attempt = filepath.Base(done)
	if err := writeTrial(dir, trial); err != nil {
		return err
	}
	if err := os.Rename(dir, done); err != nil {
		return fmt.Errorf("the attempt was given up by the run's writer: %w", err)
	}
	a, ok := parseAttempt(trial.Attempt)
	if !ok || a.round > 0 || trial.State != TrialOK {
		return nil // the writer's to judge
	}
	_, err := land(w.dir, trial, done)
	return err
}
