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

// attemptsDir holds the results of machines other than the writer's:
//
//	attempts/17-0-host-x.partial  ─ended─►  attempts/17-0-host-x  ─first─►  trials/17
//	                                              │
//	                                              └ failed or repeated: Writer.Collect decides
//
// The second number is the round: the number of replaced results of the trial when the attempt began.
const attemptsDir = "attempts"

// Worker measures trials for a run directory, or a copy of its plan, without being its writer. It needs no lock, since
// a lock excludes no one over a network file system, and never writes run.json or summary.json. Several workers may
// run the same trial, also if one of them is wrongly presumed dead:
//
//  1. Attempts A and B write directories with distinct names, so neither sees parts of the other.
//  2. A ends and renames its directory to trials/17. A rename onto an existing directory fails, so the result is A's.
//  3. B ends later. Its rename fails, and B removes its directory. A's files are unchanged, so the writer's copy of A
//     remains correct.
type Worker struct {
	dir  string
	run  Run
	name string // of this machine, in those of attempts
}

// OpenWorker opens a run directory to measure trials for it.
func OpenWorker(dir string) (*Worker, error) {
	d := Dir{Path: dir}
	if err := d.readRun(); err != nil {
		return nil, fmt.Errorf("open run %s: %w", dir, err)
	}
	name, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read host name: %w", err)
	}
	for _, sub := range []string{trialsDir, attemptsDir} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, fmt.Errorf("open run %s: %w", dir, adviseDiskFull(err, dir))
		}
	}
	return &Worker{dir: dir, run: d.Run, name: sanitizeName(name)}, nil
}

func (w *Worker) Dir() string { return w.dir }

// Run returns the content of run.json.
func (w *Worker) Run() Run { return w.run }

// Result returns the current result of a trial, nil if there is none.
func (w *Worker) Result(id int) (*Trial, error) { return readResult(w.dir, id) }

// readResult reads the trial from the directory with the final name; nil if there is none.
func readResult(dir string, id int) (*Trial, error) {
	var t Trial
	err := readJSON(filepath.Join(trialDir(dir, id), trialFile), "", &t)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read result of trial %d: %w", id, err)
	}
	return &t, nil
}

// nextRound is the round of the next attempt: 0 unless the current result measured.
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
		return nil, fmt.Errorf("open trial %d: %w", id, err)
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
		return nil, fmt.Errorf("open trial %d: %w", id, adviseDiskFull(err, w.dir))
	}
	return beginTrial(w, planned, dir)
}

// finishTrial completes an attempt, and makes it the trial's result if it is the first that measured. An interrupted
// attempt is removed.
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
		return fmt.Errorf("attempt was removed by the run's writer: %w", err)
	}
	a, ok := parseAttempt(trial.Attempt)
	if !ok || a.round > 0 || trial.State != TrialOK {
		return nil // the writer decides
	}
	_, err := promoteAttempt(w.dir, trial, done)
	return err
}

type attempt struct {
	name  string // of the directory, without the suffix
	id    int    // of the trial
	round int
	whole bool
}

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

// promoteAttempt makes a complete attempt the trial's result, unless a result exists. If the existing result measured,
// the attempt is removed; otherwise Collect decides later. It reports whether the attempt is the result.
func promoteAttempt(dir string, trial Trial, from string) (bool, error) {
	final := trialDir(dir, trial.ID)
	err := os.Rename(from, final)
	switch {
	case err == nil:
		return true, atomicfile.SyncDir(filepath.Dir(final))
	case errors.Is(err, fs.ErrNotExist):
		// The writer has processed it already, or a network file system repeated the request and
		// returned the second answer.
		t, err2 := readResult(dir, trial.ID)
		if err2 != nil || t == nil || t.State != TrialOK {
			return false, errors.Join(fmt.Errorf("attempt is missing: %w", err), err2)
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

// discardDir removes a directory of the run after renaming it. Without the rename, another attempt could be renamed to
// the path while the directory is emptied, and would be removed with it.
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
