package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"skerry/internal/base/atomicfile"
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

// Worker is a run directory, or a copy of its plan, as somebody sees it who measures trials for it and is not its
// writer. It needs no lock, which excludes nobody over a network file system, and never writes
// run.json or summary.json. Several may work on the same trial, also when one of them is thought
// dead and is not:
//
//  1. Attempt A and attempt B each write a directory of their own name, so neither sees half of the other.
//  2. A ends and renames its directory to trials/17, which no directory that is there already lets happen: the
//     result is A's, whole.
//  3. B ends later. Its rename is refused, and B removes its own directory. Nothing of A's has changed, so
//     what the writer has read of A is what stands there.
type Worker struct {
	dir  string
	run  Run
	name string // of this machine, in those of attempts
}

// OpenWorker opens a run directory to measure trials for it.
func OpenWorker(dir string) (*Worker, error) {
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
			return nil, fmt.Errorf("opening run %s: %w", dir, adviseDiskFull(err, dir))
		}
	}
	return &Worker{dir: dir, run: d.Run, name: sanitizeName(name)}, nil
}

// Dir is the run directory.
func (w *Worker) Dir() string { return w.dir }

// Run is what run.json holds.
func (w *Worker) Run() Run { return w.run }

// Result is the result that stands for a trial, nil where there is none.
func (w *Worker) Result(id int) (*Trial, error) { return readResult(w.dir, id) }

// readResult is the trial whose directory has its final name.
func readResult(dir string, id int) (*Trial, error) {
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

// nextRound is which attempt the next one is: one that follows a result which measured is not the first.
func nextRound(standing *Trial) int {
	if standing == nil || standing.State != TrialOK {
		return 0
	}
	return len(standing.Replaced) + 1
}

// OpenTrial begins an attempt at a planned trial.
func (w *Worker) OpenTrial(id int) (*TrialWriter, error) {
	planned, err := findPlanned(w.run.Plan, id)
	if err != nil {
		return nil, fmt.Errorf("opening trial %d: %w", id, err)
	}
	was, err := w.Result(id)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Join(w.dir, attemptsDir), fmt.Sprintf("%d-%d-%s-*%s", id, nextRound(was), w.name, partial))
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("opening trial %d: %w", id, adviseDiskFull(err, w.dir))
	}
	return beginTrial(w, planned, dir)
}

// finishTrial makes an attempt whole, and the trial's result where it measured and is the first. What
// was interrupted leaves nothing.
func (w *Worker) finishTrial(dir string, trial Trial) error {
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
	_, err := promoteAttempt(w.dir, trial, done)
	return err
}

// attempt is a directory of attempts/.
type attempt struct {
	name  string // of the directory, without the suffix
	id    int    // of the trial
	round int
	whole bool
}

// parseAttempt reads the name of an attempt's directory.
func parseAttempt(name string) (attempt, bool) {
	full, isPartial := strings.CutSuffix(name, partial)
	parts := strings.SplitN(full, "-", 3)
	if len(parts) != 3 {
		return attempt{}, false
	}
	id, err := strconv.Atoi(parts[0])
	round, err2 := strconv.Atoi(parts[1])
	return attempt{name: full, id: id, round: round, whole: !isPartial}, errors.Join(err, err2) == nil && id > 0 && round >= 0
}

// listAttempts lists what stands in attempts/.
func listAttempts(dir string) ([]attempt, error) {
	entries, err := os.ReadDir(filepath.Join(dir, attemptsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []attempt
	for _, e := range entries {
		if a, ok := parseAttempt(e.Name()); ok {
			all = append(all, a)
		}
	}
	return all, nil
}

// promoteAttempt makes an attempt that is whole the trial's result, unless there is one; then the attempt is
// removed where the result measured, and else stays for Collect. It tells whether it is the result.
func promoteAttempt(dir string, trial Trial, from string) (bool, error) {
	final := trialDir(dir, trial.ID)
	err := os.Rename(from, final)
	switch {
	case err == nil:
		return true, atomicfile.SyncDir(filepath.Dir(final))
	case errors.Is(err, fs.ErrNotExist):
		// The writer has judged it before this; or a network file system asked its server twice, and
		// hears of the second time.
		t, err2 := readResult(dir, trial.ID)
		if err2 != nil || t == nil || t.State != TrialOK {
			return false, errors.Join(fmt.Errorf("the attempt is gone: %w", err), err2)
		}
		return t.Attempt == trial.Attempt, nil
	case !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST):
		return false, err
	}
	t, err := readResult(dir, trial.ID)
	if err != nil || t == nil || t.State != TrialOK {
		return false, err
	}
	return false, os.RemoveAll(from)
}

// discardDir removes a directory of the run under a name that nobody lands on: while a directory is
// emptied under its own name, a rename to that name succeeds, and what was renamed would be removed with it.
func discardDir(dir, path string) error {
	if err := os.MkdirAll(filepath.Join(dir, attemptsDir), 0o755); err != nil {
		return err
	}
	away, err := os.MkdirTemp(filepath.Join(dir, attemptsDir), "away-*")
	if err != nil {
		return err
	}
	err = os.Rename(path, filepath.Join(away, "x"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(away))
}
