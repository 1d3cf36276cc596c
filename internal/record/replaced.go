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
)

// replacedDir holds the directories of attempts that were replaced, apart from those of trials:
// who reads all of trials/ reads what counts.
const replacedDir = "replaced"

// Replaced is an attempt at a trial that measured and was run again: its directory is kept,
// its figures count for nothing.
type Replaced struct {
	Dir     string    `json:"dir"` // within the run directory
	Started time.Time `json:"started"`
	Goodput float64   `json:"goodput_ops_s"`
	Verdict Verdict   `json:"verdict"`
}

// supersede lists in a trial the earlier attempts that measured, and returns where in the run
// directory the last of them is to be kept; "" where there is none.
func (w *Writer) supersede(trial *Trial) (keepAs string) {
	earlier, measured := w.earlier(trial.ID)
	if !measured {
		return ""
	}
	keepAs = filepath.Join(replacedDir, fmt.Sprintf("%d-%d", trial.ID, len(earlier.Replaced)+1))
	trial.Replaced = append(slices.Clone(earlier.Replaced), Replaced{
		Dir: keepAs, Started: earlier.Started, Goodput: earlier.Goodput, Verdict: earlier.Verdict,
	})
	return keepAs
}

// install gives a trial's directory its final name. What stands there is kept under another one,
// and is back there when that fails; without such a name it is removed.
func (w *Writer) install(dir, final, keepAs string) error {
	if keepAs == "" { // an attempt that did not end ok
		if _, err := os.Stat(final); err == nil {
			if err := discard(w.dir, final); err != nil {
				return err
			}
		}
		return w.put(dir, final)
	}
	kept := filepath.Join(w.dir, keepAs)
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return err
	}
	// It is there already where a run was killed between these two; what stands in its place then came late.
	if err := os.Rename(final, kept); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
		return err
	}
	if err := w.put(dir, final); err != nil {
		return errors.Join(err, os.Rename(kept, final))
	}
	return nil
}

// put gives a directory its final name, and removes an attempt of an earlier round that has
// landed there since that name was free.
func (w *Writer) put(dir, final string) error {
	err := os.Rename(dir, final)
	if errors.Is(err, unix.ENOTEMPTY) {
		err = errors.Join(discard(w.dir, final), os.Rename(dir, final))
	}
	return err
}

// earlier is the attempt at a trial that summary.json has, and whether it measured.
func (w *Writer) earlier(id int) (t Trial, measured bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.summary.Trials, func(t Trial) bool { return t.ID == id })
	if i < 0 {
		return Trial{}, false
	}
	return w.summary.Trials[i], w.summary.Trials[i].State == TrialOK
}
