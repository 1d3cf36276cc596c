package serve

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"skerry/internal/evidence/warnings"
	"skerry/internal/experiment"
	"skerry/internal/record"
	"skerry/internal/run/live"
)

var errUnknownRun = errors.New("no such run")

// Entry is a run in the list.
type Entry struct {
	Name        string `json:"name"` // directory name
	Experiment  string `json:"experiment,omitempty"`
	Description string `json:"description,omitempty"`
	// State is the state of a run.
	State    State             `json:"state"`
	Started  time.Time         `json:"started,omitzero"`
	Finished time.Time         `json:"finished,omitzero"`
	Planned  int               `json:"planned"` // trials
	Trials   map[string]int    `json:"trials"`  // number of ended trials: valid, suspect, failed, interrupted
	Versions map[string]string `json:"databases,omitempty"`
	// Goodput is the minimum and maximum over trials.
	Goodput *[2]float64 `json:"goodput_ops_s,omitempty"`
	// Parameters are the values of each axis.
	Parameters map[string][]string `json:"parameters,omitempty"`
	// Problem explains why the run cannot be read.
	Problem string `json:"problem,omitempty"`
	// Doubts are warnings about its trials, the most serious first.
	Doubts []warnings.Warning `json:"doubts,omitempty"`
	Notes  record.Notes       `json:"notes"`
}

// State is the progress of a run.
type State string

const (
	// States of runs.
	StateRunning     State = "running"
	StateFinished    State = "finished"
	StateInterrupted State = "interrupted" // ended before all trials
	StateUnreadable  State = "unreadable"
)

// runs lists the runs of a folder. Entries are cached while their files do not change.
type runs struct {
	dir string

	mu    sync.Mutex
	cache map[string]cachedEntry
}

type cachedEntry struct {
	stamp string
	entry Entry
	at    time.Time
}

// runningTTL bounds the cache of a running entry, because files do not show whether the process is
// alive.
const runningTTL = 5 * time.Second

func newRuns(dir string) *runs { return &runs{dir: dir, cache: map[string]cachedEntry{}} }

// path returns the directory of a run. The name must not be a path or a symbolic link.
func (r *runs) path(name string) (string, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") {
		return "", errUnknownRun
	}
	path := filepath.Join(r.dir, name)
	st, err := os.Lstat(path)
	if err != nil || !st.IsDir() {
		return "", fmt.Errorf("%w: %q", errUnknownRun, name)
	}
	if _, err := os.Lstat(filepath.Join(path, "run.json")); err != nil {
		return "", fmt.Errorf("%w: %q", errUnknownRun, name)
	}
	return path, nil
}

func (r *runs) list() ([]Entry, error) {
	found, err := os.ReadDir(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return []Entry{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Entry, 0, len(found))
	next := make(map[string]cachedEntry, len(found))
	for _, f := range found {
		path, err := r.path(f.Name())
		if err != nil {
			continue
		}
		stamp := fileStamp(path)
		k := r.cache[f.Name()]
		if k.stamp != stamp || k.entry.State == StateRunning && time.Since(k.at) > runningTTL {
			k = cachedEntry{stamp, readEntry(path), time.Now()}
		}
		next[f.Name()] = k
		out = append(out, k.entry)
	}
	r.cache = next
	slices.SortStableFunc(out, func(a, b Entry) int { return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.Name, a.Name)) })
	return out, nil
}

func fileStamp(path string) string {
	var s strings.Builder
	for _, name := range []string{"", "run.json", "summary.json", "notes.json", "trials", live.SocketFile} {
		if st, err := os.Stat(filepath.Join(path, name)); err == nil {
			fmt.Fprintf(&s, "%d.%d ", st.ModTime().UnixNano(), st.Size())
		}
	}
	return s.String()
}

func readEntry(path string) Entry {
	e := Entry{Name: filepath.Base(path), Trials: map[string]int{}}
	var errNotes error
	e.Notes, errNotes = record.ReadNotes(path)
	d, err := record.Open(path)
	if err != nil {
		e.State, e.Problem = StateUnreadable, err.Error()
		if st, err := os.Stat(filepath.Join(path, "run.json")); err == nil {
			e.Started = st.ModTime()
		}
		return e
	}
	e.Experiment, e.Description, e.Started, e.Finished = d.Run.Name, d.Run.Description, d.Run.Started, d.Run.Finished
	e.Planned, e.Versions = len(d.Run.Plan), map[string]string{}
	for label, version := range d.Run.Versions.Databases {
		e.Versions[experiment.ShortLabel(label)] = version
	}
	e.State = StateFinished
	switch {
	case d.Running:
		e.State = StateRunning
	case !d.Summary.Complete:
		e.State = StateInterrupted
	}
	for _, t := range d.Summary.Trials {
		e.Trials[trialOutcome(t)]++
		if t.State != record.TrialOK {
			continue
		}
		if e.Goodput == nil {
			e.Goodput = &[2]float64{t.Goodput, t.Goodput}
		}
		e.Goodput[0], e.Goodput[1] = min(e.Goodput[0], t.Goodput), max(e.Goodput[1], t.Goodput)
	}
	e.Doubts = warnings.Collect(d.Summary.Trials, e.Planned)
	e.Parameters = parameterValues(d.Run.Plan)
	if errNotes != nil {
		e.Problem = errNotes.Error()
	}
	return e
}

func trialOutcome(t record.Trial) string {
	if t.State == record.TrialOK {
		return t.Verdict.State
	}
	return t.State
}

const maxAxisValues = 20

func parameterValues(plan []record.Planned) map[string][]string {
	out := map[string][]string{}
	for _, p := range plan {
		for name, v := range p.Parameters {
			text := fmt.Sprint(v)
			if len(out[name]) < maxAxisValues && !slices.Contains(out[name], text) {
				out[name] = append(out[name], text)
			}
		}
	}
	return out
}
