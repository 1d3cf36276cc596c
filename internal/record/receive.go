package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Receive takes in an attempt that was made in a copy of the plan: fill writes its files. Collect
// judges it as any other. One that came before is not taken twice.
func (w *Writer) Receive(name string, fill func(dir string) error) error {
	a, ok := parseAttempt(name)
	if !ok || !a.whole || filepath.Base(name) != name {
		return fmt.Errorf("receiving a result: %q is no attempt's name", name)
	}
	if t, err := standing(w.dir, a.id); err == nil && t != nil && t.Attempt == name {
		return nil
	}
	final := filepath.Join(w.dir, attemptsDir, name)
	err := os.RemoveAll(final + partial) // half of it, from when this was killed
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
		err = fmt.Errorf("it holds attempt %q at trial %d", t.Attempt, t.ID)
	}
	if err == nil {
		if err = os.Rename(final+partial, final); errors.Is(err, fs.ErrExist) {
			return os.RemoveAll(final + partial) // it waits to be judged already
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("receiving attempt %s: %w", name, full(err, w.dir)), os.RemoveAll(final+partial))
	}
	return nil
}
