package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// lag is the delay of summary.json behind the results in a large run. The file is written as a whole, and has some
// 200 MB for 10,000 trials; writing it for each result would occupy a core. So it may lag:
//
//  1. A result arrives in trials/17, and Collect reads it. summary.json does not have it yet.
//  2. A reader misses trial 17 in summary.json, and reads trials/17 (Open).
//  3. The writer is killed. The process that resumes the run does as that reader, and writes the missing results.
//
// A result that replaces one in the file is written at once, since readers would not look for another one.
type lag struct {
	known  map[int]bool // trials of the summary
	behind bool
	wrote  time.Time // when the file was written last
	took   time.Duration
}

const (
	// atOnce is the writing time up to which the file never lags.
	atOnce = 50 * time.Millisecond
	// lagFactor bounds the lag to this multiple of the writing time: half a percent of the time.
	lagFactor = 200
)

func (l *lag) due() bool { return l.took <= atOnce || time.Since(l.wrote) >= lagFactor*l.took }

// knownIDs returns the trials in the summary. The caller holds the lock.
func (w *Writer) knownIDs() map[int]bool {
	if w.lag.known == nil || len(w.lag.known) != len(w.summary.Trials) {
		w.lag.known = make(map[int]bool, len(w.summary.Trials))
		for _, t := range w.summary.Trials {
			w.lag.known[t.ID] = true
		}
	}
	return w.lag.known
}

func (w *Writer) newResults() ([]int, error) {
	d, err := os.Open(filepath.Join(w.dir, trialsDir))
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return nil, fmt.Errorf("list results: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.knownIDs()
	var all []int
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil && !known[id] {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all, nil
}

func (w *Writer) applyTrials(trials []Trial) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, again := w.knownIDs(), false
	for _, t := range trials {
		if known[t.ID] {
			again = true
			i := slices.IndexFunc(w.summary.Trials, func(was Trial) bool { return was.ID == t.ID })
			w.summary.Trials[i] = t
			continue
		}
		known[t.ID] = true
		w.summary.Trials = append(w.summary.Trials, t)
	}
	w.lag.behind = w.lag.behind || len(trials) > 0
	w.summary.Complete = len(known) >= len(w.run.Plan) && w.summary.covers(w.run.Plan)
	if w.lag.behind && (again || w.lag.due()) {
		return w.writeSummary()
	}
	return nil
}

func (w *Writer) catchUp() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.lag.behind {
		return nil
	}
	return adviseDiskFull(w.writeSummary(), w.dir)
}

// writeSummary writes summary.json. The caller holds the lock.
func (w *Writer) writeSummary() error {
	slices.SortFunc(w.summary.Trials, byID)
	begun := time.Now()
	err := writeJSON(filepath.Join(w.dir, summaryFile), w.summary)
	if err == nil {
		w.lag.behind, w.lag.wrote, w.lag.took = false, time.Now(), time.Since(begun)
	}
	return err
}
