package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"skerry/internal/base/atomicfile"
	"skerry/internal/base/flock"
)

const (
	runFile     = "run.json"
	summaryFile = "summary.json"
	trialsDir   = "trials"
	latest      = "latest"
	partial     = ".partial"
)

// Writer writes a run directory during the run. It holds a lock on the directory that ends with the process. Its
// methods are safe for concurrent use.
type Writer struct {
	dir     string
	lock    *flock.Lock
	suspect bool // suspect trials remain

	mu      sync.Mutex
	run     Run
	summary Summary
	lag     lag // of summary.json behind the results
}

// Create makes a new run directory in parent, named after the start and the experiment, and links parent/latest to it.
// It sets the schema, the start, the Go version and the machine if the caller omitted them.
func Create(parent string, run Run) (*Writer, error) {
	run.Schema = RunSchema
	if run.Started.IsZero() {
		run.Started = time.Now()
	}
	if err := run.fillMachine(); err != nil {
		return nil, err
	}
	if err := checkPlan(run.Plan); err != nil {
		return nil, fmt.Errorf("create run directory: %w", err)
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("create run directory: %w", adviseDiskFull(err, parent))
	}
	dir, err := makeUnique(filepath.Join(parent, run.Started.Format("20060102-150405")+"-"+sanitizeName(run.Name)))
	if err != nil {
		return nil, fmt.Errorf("create run directory: %w", adviseDiskFull(err, parent))
	}
	w := &Writer{dir: dir, run: run, summary: Summary{
		Schema: SummarySchema, Experiment: run.Name, Run: filepath.Base(dir), Planned: len(run.Plan), Trials: []Trial{},
		Complete: len(run.Plan) == 0,
	}}
	if err := w.initialize(); err != nil {
		return nil, errors.Join(fmt.Errorf("create run directory: %w", adviseDiskFull(err, dir)), w.Close(), os.RemoveAll(dir))
	}
	return w, nil
}

func (w *Writer) initialize() error {
	if err := w.acquireLock(); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(w.dir, trialsDir), 0o755); err != nil {
		return err
	}
	if err := errors.Join(w.writeRun(), w.writeSummary()); err != nil {
		return err
	}
	return linkTo(filepath.Join(filepath.Dir(w.dir), latest), filepath.Base(w.dir))
}

// Resume reopens an interrupted run, and collects what other machines have measured since. Remaining then lists the
// trials that did not end ok and, if suspect is set, the suspect ones. ErrFinished means that no trial remains.
func Resume(dir string, suspect bool) (*Writer, error) {
	if _, err := Open(dir); err != nil { // its errors are more specific than the lock's
		return nil, err
	}
	w := &Writer{dir: dir, suspect: suspect}
	if err := w.reopen(); err != nil {
		return nil, errors.Join(fmt.Errorf("resume %s: %w", dir, adviseDiskFull(err, dir)), w.Close())
	}
	return w, nil
}

func (w *Writer) reopen() error {
	if err := w.acquireLock(); err != nil {
		return err
	}
	d, err := Open(w.dir)
	if err != nil {
		return err
	}
	w.dir, w.run, w.summary = d.Path, d.Run, d.Summary
	came, err := w.Collect()
	if err != nil {
		return err
	}
	if len(w.Remaining()) == 0 && len(came) == 0 {
		return ErrFinished
	}
	if err := os.MkdirAll(filepath.Join(w.dir, trialsDir), 0o755); err != nil {
		return err
	}
	w.run.Resumed = append(w.run.Resumed, time.Now())
	w.run.Finished = time.Time{}
	return errors.Join(w.writeRun(), w.writeSummary())
}

// acquireLock locks the directory itself, so that no lock file remains.
func (w *Writer) acquireLock() error {
	f, err := os.Open(w.dir)
	if err != nil {
		return err
	}
	w.lock, err = flock.Acquire(f)
	if errors.Is(err, flock.ErrHeld) {
		err = ErrBusy
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

func (w *Writer) Dir() string { return w.dir }

// Run returns a copy of run.json.
func (w *Writer) Run() Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.run
}

// Summary returns a copy of summary.json.
func (w *Writer) Summary() Summary {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.summary
	s.Trials = slices.Clone(s.Trials)
	slices.SortFunc(s.Trials, byID)
	return s
}

// Trials iterates over the trials of summary.json in any order, without copying them. The loop body must not keep the
// pointers and must not call other methods.
func (w *Writer) Trials(yield func(*Trial) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.summary.Trials {
		if !yield(&w.summary.Trials[i]) {
			return
		}
	}
}

// Remaining returns, in the order of the plan, the trials that did not end ok, and the suspect ones if Resume was
// called with suspect.
func (w *Writer) Remaining() []Planned {
	w.mu.Lock()
	defer w.mu.Unlock()
	return remainingTrials(w.run, w.summary, w.suspect)
}

func remainingTrials(run Run, summary Summary, suspect bool) []Planned {
	done := map[int]bool{}
	for _, t := range summary.Trials {
		done[t.ID] = t.State == TrialOK && !(suspect && t.Verdict.State == Suspect)
	}
	return slices.DeleteFunc(slices.Clone(run.Plan), func(p Planned) bool { return done[p.ID] })
}

// Update changes run.json.
func (w *Writer) Update(change func(*Run)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.run)
	return adviseDiskFull(w.writeRun(), w.dir)
}

// Finish records the end of the run, even if trials remain, and closes it.
func (w *Writer) Finish() error {
	return errors.Join(w.catchUp(), w.Update(func(r *Run) { r.Finished = time.Now() }), w.removeAttempts(), w.Close())
}

// Close unlocks the directory and keeps its files.
func (w *Writer) Close() error {
	if w.lock == nil {
		return nil
	}
	err := w.lock.Close()
	w.lock = nil
	return err
}

func (w *Writer) recordTrial(trials ...Trial) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.summary.Trials
	w.summary.Trials = withTrials(before, trials)
	w.summary.Complete = w.summary.covers(w.run.Plan)
	if err := w.writeSummary(); err != nil {
		w.summary.Trials = before
		w.summary.Complete = w.summary.covers(w.run.Plan)
		return err
	}
	return nil
}

func withTrials(trials, with []Trial) []Trial {
	all := make(map[int]Trial, len(trials)+len(with))
	for _, list := range [][]Trial{trials, with} {
		for _, t := range list {
			all[t.ID] = t
		}
	}
	return slices.SortedFunc(maps.Values(all), byID)
}

func byID(a, b Trial) int { return a.ID - b.ID }

func (s Summary) covers(plan []Planned) bool {
	ended := map[int]bool{}
	for _, t := range s.Trials {
		ended[t.ID] = t.State != TrialInterrupted
	}
	return !slices.ContainsFunc(plan, func(p Planned) bool { return !ended[p.ID] })
}

func (w *Writer) writeRun() error { return writeJSON(filepath.Join(w.dir, runFile), w.run) }

func checkPlan(plan []Planned) error {
	seen := map[int]bool{}
	for _, p := range plan {
		if p.ID < 1 || seen[p.ID] {
			return fmt.Errorf("plan: trial id %d is below 1 or used twice", p.ID)
		}
		seen[p.ID] = true
	}
	return nil
}

// makeUnique makes a directory, with the suffix -2, -3 ... if the name is in use.
func makeUnique(path string) (string, error) {
	for n := 1; ; n++ {
		p := path
		if n > 1 {
			p += "-" + strconv.Itoa(n)
		}
		if err := os.Mkdir(p, 0o755); !errors.Is(err, fs.ErrExist) {
			return p, err
		}
	}
}

// sanitizeName turns text into a short file name of letters, digits, - _ and inner dots.
func sanitizeName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, s)
	s = strings.Trim(s, "-.")
	if len(s) > 80 {
		s = strings.Trim(s[:80], "-.")
	}
	if s == "" {
		return "run"
	}
	return s
}

func writeJSON(path string, v any) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(v)
	})
}

// linkTo makes the symbolic link name point at target and replaces an older link. A file that is not a link belongs to
// the user and is kept.
func linkTo(name, target string) error {
	if st, err := os.Lstat(name); err == nil && st.Mode()&os.ModeSymlink == 0 {
		return nil
	}
	return atomicfile.Symlink(name, target)
}
