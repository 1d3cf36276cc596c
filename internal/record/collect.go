package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/atomicfile"
)

// Collect adds the results that workers have delivered since the last call, and returns them. It ignores unfinished
// attempts.
func (w *Writer) Collect() ([]Trial, error) {
	landed, err := w.readNewResults()
	if err != nil {
		return nil, fmt.Errorf("collect results: %w", adviseDiskFull(err, w.dir))
	}
	waiting, err := listAttempts(w.dir)
	if err != nil {
		return nil, fmt.Errorf("collect results: %w", err)
	}
	for _, a := range waiting {
		if !a.whole {
			continue
		}
		t, err := w.judgeAttempt(a)
		if err != nil {
			return nil, fmt.Errorf("collect attempt %s: %w", a.name, adviseDiskFull(err, w.dir))
		}
		if t != nil {
			landed = append(landed, *t)
		}
	}
	return landed, adviseDiskFull(w.applyTrials(landed), w.dir)
}

func (w *Writer) readNewResults() ([]Trial, error) {
	ids, err := w.newResults()
	if err != nil {
		return nil, err
	}
	var all []Trial
	for _, id := range ids {
		t, err := readResult(w.dir, id)
		if err != nil { // incomplete: the trial is measured again
			err = discardDir(w.dir, w.trialDir(id))
		} else if t != nil {
			all = append(all, *t)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// judgeAttempt makes a complete attempt the trial's result if it is better than the current one, and removes it
// otherwise. Only the writer does so, which excludes concurrent decisions. A failed result gives way to any later one,
// and a result that measured to the first attempt of the next round.
func (w *Writer) judgeAttempt(a attempt) (*Trial, error) {
	dir := filepath.Join(w.dir, attemptsDir, a.name)
	var t Trial
	if err := readJSON(filepath.Join(dir, trialFile), "", &t); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // promoted concurrently
	} else if err != nil || t.ID != a.id {
		return nil, discardDir(w.dir, dir)
	}
	was, err := readResult(w.dir, a.id)
	if err != nil {
		return nil, err
	}
	if a.round > 0 {
		return w.replaceResult(a, dir, t)
	}
	if was != nil && was.State != TrialOK {
		if err := discardDir(w.dir, w.trialDir(a.id)); err != nil {
			return nil, err
		}
		was = nil
	}
	if was != nil {
		return nil, discardDir(w.dir, dir)
	}
	if ok, err := promoteAttempt(w.dir, t, dir); !ok || err != nil {
		return nil, err
	}
	return &t, nil
}

func (w *Writer) replaceResult(a attempt, dir string, t Trial) (*Trial, error) {
	earlier, measured := w.previousAttempt(a.id)
	if t.State != TrialOK || !measured || len(earlier.Replaced) != a.round-1 {
		return nil, discardDir(w.dir, dir)
	}
	keepAs := w.listReplaced(&t)
	if err := writeJSON(filepath.Join(dir, trialFile), t); err != nil {
		return nil, err
	}
	final := w.trialDir(a.id)
	if err := w.installTrial(dir, final, keepAs); err != nil {
		return nil, err
	}
	return &t, atomicfile.SyncDir(filepath.Dir(final))
}

// removeAttempts removes attempts/ once every trial has its result. A worker that still writes there fails.
func (w *Writer) removeAttempts() error {
	dir := filepath.Join(w.dir, attemptsDir)
	if len(w.Remaining()) > 0 {
		_ = os.Remove(dir) // succeeds only if empty
		return nil
	}
	return os.RemoveAll(dir)
}

// Receive adds an attempt that was made in a copy of the plan: fill writes its files, and Collect judges it later. An
// attempt that was received before is ignored.
func (w *Writer) Receive(name string, fill func(dir string) error) error {
	a, ok := parseAttempt(name)
	if !ok || !a.whole || filepath.Base(name) != name {
		return fmt.Errorf("receive result: %q is not the name of an attempt", name)
	}
	if t, err := readResult(w.dir, a.id); err == nil && t != nil && t.Attempt == name {
		return nil
	}
	final := filepath.Join(w.dir, attemptsDir, name)
	err := os.RemoveAll(final + partial) // remains of a killed process
	if err == nil {
		err = os.MkdirAll(final+partial, 0o755)
	}
	if err == nil {
		err = fill(final + partial)
	}
	var t Trial
	if err == nil {
		err = readJSON(filepath.Join(final+partial, trialFile), "", &t)
	}
	if err == nil && (t.ID != a.id || t.Attempt != name) {
		err = fmt.Errorf("contains attempt %q at trial %d", t.Attempt, t.ID)
	}
	if err == nil {
		if err = os.Rename(final+partial, final); errors.Is(err, fs.ErrExist) {
			return os.RemoveAll(final + partial) // received before
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("receive attempt %s: %w", name, adviseDiskFull(err, w.dir)), os.RemoveAll(final+partial))
	}
	return nil
}

// replacedDir holds replaced attempts. They are not in trials/, where readers expect results that count.
const replacedDir = "replaced"

// Replaced is an attempt that measured and was repeated. Its directory is kept; its figures do not count.
type Replaced struct {
	Dir     string    `json:"dir"` // within the run directory
	Started time.Time `json:"started"`
	Goodput float64   `json:"goodput_ops_s"`
	Verdict Verdict   `json:"verdict"`
}

// listReplaced adds the earlier attempts that measured to a trial. It returns the path in the run directory at which
// the last of them must be kept, "" if there is none.
func (w *Writer) listReplaced(trial *Trial) (keepAs string) {
	earlier, measured := w.previousAttempt(trial.ID)
	if !measured {
		return ""
	}
	keepAs = filepath.Join(replacedDir, fmt.Sprintf("%d-%d", trial.ID, len(earlier.Replaced)+1))
	trial.Replaced = append(slices.Clone(earlier.Replaced), Replaced{
		Dir: keepAs, Started: earlier.Started, Goodput: earlier.Goodput, Verdict: earlier.Verdict,
	})
	return keepAs
}

// installTrial gives a trial's directory its final name. The current directory is moved to keepAs, and moved back on
// failure; without keepAs it is removed.
func (w *Writer) installTrial(dir, final, keepAs string) error {
	if keepAs == "" { // the current attempt did not end ok
		if _, err := os.Stat(final); err == nil {
			if err := discardDir(w.dir, final); err != nil {
				return err
			}
		}
		return w.moveTrial(dir, final)
	}
	target := filepath.Join(w.dir, keepAs)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	// target exists if a run was killed between the two renames; the directory at final then came later.
	if err := os.Rename(final, target); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
		return err
	}
	if err := w.moveTrial(dir, final); err != nil {
		return errors.Join(err, os.Rename(target, final))
	}
	return nil
}

// moveTrial renames a directory to its final name, and removes an attempt of an earlier round that took the name
// meanwhile.
func (w *Writer) moveTrial(dir, final string) error {
	err := os.Rename(dir, final)
	if errors.Is(err, unix.ENOTEMPTY) {
		err = errors.Join(discardDir(w.dir, final), os.Rename(dir, final))
	}
	return err
}

func (w *Writer) previousAttempt(id int) (t Trial, measured bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.summary.Trials, func(t Trial) bool { return t.ID == id })
	if i < 0 {
		return Trial{}, false
	}
	return w.summary.Trials[i], w.summary.Trials[i].State == TrialOK
}
