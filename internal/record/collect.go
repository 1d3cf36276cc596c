package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"skerry/internal/base/atomicfile"
)

// Collect takes in what others have measured for the run since the last time, and returns those
// trials. Half-written attempts are left alone.
func (w *Writer) Collect() ([]Trial, error) {
	landed, err := w.landed()
	if err != nil {
		return nil, fmt.Errorf("collecting results: %w", full(err, w.dir))
	}
	waiting, err := attempts(w.dir)
	if err != nil {
		return nil, fmt.Errorf("collecting results: %w", err)
	}
	for _, a := range waiting {
		if !a.whole {
			continue
		}
		t, err := w.adopt(a)
		if err != nil {
			return nil, fmt.Errorf("collecting attempt %s: %w", a.name, full(err, w.dir))
		}
		if t != nil {
			landed = append(landed, *t)
		}
	}
	return landed, full(w.take(landed), w.dir)
}

// landed are the trials that have got a result which summary.json does not know.
func (w *Writer) landed() ([]Trial, error) {
	ids, err := w.unknown()
	if err != nil {
		return nil, err
	}
	var all []Trial
	for _, id := range ids {
		t, err := standing(w.dir, id)
		if err != nil { // half of it is there: it is measured again
			err = discard(w.dir, w.trialDir(id))
		} else if t != nil {
			all = append(all, *t)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// adopt judges one attempt that is whole: it becomes the trial's result where it is worth more
// than what stands, and is removed else. Only the writer does that, so that no two decide at once:
// a failed one gives way to any later one, and a result that measured to the first attempt of the next round.
func (w *Writer) adopt(a attempt) (*Trial, error) {
	dir := filepath.Join(w.dir, attemptsDir, a.name)
	var t Trial
	if err := readJSON(filepath.Join(dir, trialFile), "", &t); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it has just landed
	} else if err != nil || t.ID != a.id {
		return nil, discard(w.dir, dir)
	}
	was, err := standing(w.dir, a.id)
	if err != nil {
		return nil, err
	}
	if a.round > 0 {
		return w.replace(a, dir, t)
	}
	if was != nil && was.State != TrialOK {
		if err := discard(w.dir, w.trialDir(a.id)); err != nil {
			return nil, err
		}
		was = nil
	}
	if was != nil {
		return nil, discard(w.dir, dir)
	}
	if ok, err := land(w.dir, t, dir); !ok || err != nil {
		return nil, err
	}
	return &t, nil
}

// replace puts a trial that was run again in place of the result of the round before.
func (w *Writer) replace(a attempt, dir string, t Trial) (*Trial, error) {
	earlier, measured := w.earlier(a.id)
	if t.State != TrialOK || !measured || len(earlier.Replaced) != a.round-1 {
		return nil, discard(w.dir, dir)
	}
	keepAs := w.supersede(&t)
	if err := writeJSON(filepath.Join(dir, trialFile), t); err != nil {
		return nil, err
	}
	final := w.trialDir(a.id)
	if err := w.install(dir, final, keepAs); err != nil {
		return nil, err
	}
	return &t, atomicfile.SyncDir(filepath.Dir(final))
}

// tidy removes what attempts have left, once every trial has its result: who is still writing
// there finds that the attempt was given up.
func (w *Writer) tidy() error {
	dir := filepath.Join(w.dir, attemptsDir)
	if len(w.Remaining()) > 0 {
		_ = os.Remove(dir) // where nobody has used it
		return nil
	}
	return os.RemoveAll(dir)
}
