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

// attempts lists what stands in attempts/.
func attempts(dir string) ([]attempt, error) {
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

// land makes an attempt that is whole the trial's result, unless there is one; then the attempt is
// removed where the result measured, and else stays for Collect. It tells whether it is the result.
func land(dir string, trial Trial, from string) (bool, error) {
	final := trialDir(dir, trial.ID)
	err := os.Rename(from, final)
	switch {
	case err == nil:
		return true, atomicfile.SyncDir(filepath.Dir(final))
	case errors.Is(err, fs.ErrNotExist):
		// The writer has judged it before this; or a network file system asked its server twice, and
		// hears of the second time.
		t, err2 := standing(dir, trial.ID)
		if err2 != nil || t == nil || t.State != TrialOK {
			return false, errors.Join(fmt.Errorf("the attempt is gone: %w", err), err2)
		}
		return t.Attempt == trial.Attempt, nil
	case !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST):
		return false, err
	}
	t, err := standing(dir, trial.ID)
	if err != nil || t == nil || t.State != TrialOK {
		return false, err
	}
	return false, os.RemoveAll(from)
}

// discard removes a directory of the run under a name that nobody lands on: while a directory is
// emptied under its own name, a rename to that name succeeds, and what was renamed would be removed with it.
func discard(dir, path string) error {
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
