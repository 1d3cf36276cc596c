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

// lag is how summary.json of a large run follows what others measure. The file is written whole, and
// that of 10,000 trials is some 200 MB: written for each result, it would cost a core. So it may be behind:
//
//  1. A result lands in trials/17, and Collect takes it in. summary.json does not have it yet.
//  2. A reader finds in summary.json no trial 17, and reads trials/17 (Open).
//  3. The writer is killed. Who takes the run up does as that reader, and writes what was behind.
//
// A result in place of one that the file has is written at once, since a reader would look for no other one.
type lag struct {
	known  map[int]bool // trials of the summary
	behind bool
	wrote  time.Time // when the file was written last
	took   time.Duration
}

const (
	// atOnce is how long writing may take without any lag.
	atOnce = 50 * time.Millisecond
	// lagFactor times as long as writing takes, the file may be behind: half a percent of the time.
	lagFactor = 200
)

func (l *lag) due() bool { return l.took <= atOnce || time.Since(l.wrote) >= lagFactor*l.took }

// knownIDs are the trials that the summary knows; the lock is held.
func (w *Writer) knownIDs() map[int]bool {
	if w.lag.known == nil || len(w.lag.known) != len(w.summary.Trials) {
		w.lag.known = make(map[int]bool, len(w.summary.Trials))
		for _, t := range w.summary.Trials {
			w.lag.known[t.ID] = true
		}
	}
	return w.lag.known
}

// newResults are the trials that have got a directory and are not in the summary, in their order.
func (w *Writer) newResults() ([]int, error) {
	d, err := os.Open(filepath.Join(w.dir, trialsDir))
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return nil, fmt.Errorf("listing results: %w", err)
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

// applyTrials puts trials into the summary, and into its file as soon as that is due.
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

// catchUp writes what summary.json lacks.
func (w *Writer) catchUp() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.lag.behind {
		return nil
	}
	return adviseDiskFull(w.writeSummary(), w.dir)
}

// writeSummary writes summary.json; the lock is held.
func (w *Writer) writeSummary() error {
	slices.SortFunc(w.summary.Trials, byID)
	begun := time.Now()
	err := writeJSON(filepath.Join(w.dir, summaryFile), w.summary)
	if err == nil {
		w.lag.behind, w.lag.wrote, w.lag.took = false, time.Now(), time.Since(begun)
	}
	return err
}
