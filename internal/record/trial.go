package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"skerry/internal/base/atomicfile"
	"skerry/internal/machine/files"
	"skerry/internal/topology"
)

const (
	trialFile      = "trial.json"
	timelineFile   = "timeline.parquet"
	nodesFile      = "nodes.parquet"
	networkFile    = "network.parquet"
	linksFile      = "links.parquet"
	directionsFile = "directions.parquet"
	poolsFile      = "pools.parquet"
	errorsFile     = "errors.parquet"
	eventsFile     = "events.jsonl"
	trafficFile    = "traffic.json"
	topologyFile   = "topology.json"
	ycsbFile       = "ycsb.txt"
	logsDir        = "logs"
	histogramExt   = ".hdr"
)

// TrialWriter writes one trial. Its directory has the suffix .partial until Finish, so a directory without the suffix
// is complete. Its methods are safe for concurrent use.
type TrialWriter struct {
	home    trialHome
	planned Planned
	dir     string // with the suffix

	mu         sync.Mutex
	timeline   *table[Second]
	nodes      *table[NodeSecond]
	network    *table[NetworkSecond]
	links      *table[LinkSecond]
	directions *table[DirectionSecond]
	pools      *table[PoolSecond]
	errors     *table[ErrorSecond]
	events     *os.File
	written    []Event
}

type trialHome interface {
	Dir() string
	// finishTrial accepts the directory of an ended trial whose tables are complete.
	finishTrial(dir string, trial Trial) error
}

// OpenTrial begins a planned trial and removes the remains of a killed attempt.
func (w *Writer) OpenTrial(id int) (*TrialWriter, error) {
	dir := w.trialDir(id) + partial
	planned, err := findPlanned(w.Run().Plan, id)
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("open trial %d: %w", id, adviseDiskFull(err, w.dir))
	}
	return beginTrial(w, planned, dir)
}

func (w *Writer) trialDir(id int) string { return trialDir(w.dir, id) }

// beginTrial begins a trial in an exclusive directory.
func beginTrial(h trialHome, planned Planned, dir string) (*TrialWriter, error) {
	t := &TrialWriter{home: h, planned: planned, dir: dir}
	if err := t.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open trial %d: %w", planned.ID, adviseDiskFull(err, h.Dir())), t.Abandon())
	}
	return t, nil
}

func (t *TrialWriter) open() error {
	var err error
	if t.events, err = os.Create(filepath.Join(t.dir, eventsFile)); err != nil {
		return err
	}
	if t.timeline, err = newTable[Second](filepath.Join(t.dir, timelineFile)); err != nil {
		return err
	}
	t.nodes, err = newTable[NodeSecond](filepath.Join(t.dir, nodesFile))
	return err
}

// Dir is the directory of the trial's files until Finish.
func (t *TrialWriter) Dir() string { return t.dir }

// Second adds a row to timeline.parquet.
func (t *TrialWriter) Second(s Second) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wrapError("write timeline", t.timeline.add(s))
}

// NodeSeconds adds rows to nodes.parquet.
func (t *TrialWriter) NodeSeconds(rows ...NodeSecond) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wrapError("write node samples", t.nodes.add(rows...))
}

// NetworkSecond adds a row to network.parquet.
func (t *TrialWriter) NetworkSecond(s NetworkSecond) error {
	return addRows(t, "write network samples", &t.network, networkFile, s)
}

// LinkSeconds adds rows to links.parquet.
func (t *TrialWriter) LinkSeconds(rows ...LinkSecond) error {
	return addRows(t, "write link samples", &t.links, linksFile, rows...)
}

// DirectionSeconds adds rows to directions.parquet.
func (t *TrialWriter) DirectionSeconds(rows ...DirectionSecond) error {
	return addRows(t, "write link directions", &t.directions, directionsFile, rows...)
}

// PoolSeconds adds rows to pools.parquet.
func (t *TrialWriter) PoolSeconds(rows ...PoolSecond) error {
	return addRows(t, "write workload samples", &t.pools, poolsFile, rows...)
}

// ErrorSeconds adds rows to errors.parquet.
func (t *TrialWriter) ErrorSeconds(rows ...ErrorSecond) error {
	return addRows(t, "write errors", &t.errors, errorsFile, rows...)
}

func addRows[T any](t *TrialWriter, doing string, to **table[T], file string, rows ...T) error {
	if len(rows) == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var err error
	if *to == nil {
		*to, err = newTable[T](filepath.Join(t.dir, file))
	}
	if err == nil {
		err = (*to).add(rows...)
	}
	return t.wrapError(doing, err)
}

// Event appends a line to events.jsonl immediately.
func (t *TrialWriter) Event(e Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return t.wrapError("write event", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written = append(t.written, e)
	_, err = t.events.Write(append(line, '\n'))
	return t.wrapError("write event", err)
}

// Events returns the last line of every event so far, like Dir.Events.
func (t *TrialWriter) Events() []Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	return latestEvents(t.written)
}

// Histogram writes NAME.hdr, an HdrHistogram log in microseconds. Names combine an operation and a clock:
// "READ.service", "READ.response".
func (t *TrialWriter) Histogram(name string, write func(io.Writer) error) error {
	return t.writeFile(sanitizeName(name)+histogramExt, write)
}

// YCSB writes ycsb.txt, the result in YCSB's text format.
func (t *TrialWriter) YCSB(write func(io.Writer) error) error { return t.writeFile(ycsbFile, write) }

// Topology writes topology.json, the cloud of the trial.
func (t *TrialWriter) Topology(topo topology.Topology) error {
	return t.wrapError("write topology", writeJSON(filepath.Join(t.dir, topologyFile), topo))
}

func (t *TrialWriter) writeFile(name string, write func(io.Writer) error) error {
	return t.wrapError("write file", atomicfile.Write(filepath.Join(t.dir, name), write))
}

// maxLog bounds the kept end of one log; the reason of a failure is at the end.
const maxLog = 8 << 20

// Logs copies the end of each log, by name, into logs/. Content before the offsets of from belongs to another trial.
func (t *TrialWriter) Logs(ctx context.Context, logs map[string]files.File, from map[string]int64) error {
	var errs []error
	for name, log := range logs {
		if err := copyEnd(ctx, filepath.Join(t.dir, logsDir, sanitizeName(name)+".log"), log, from[name]); err != nil {
			errs = append(errs, fmt.Errorf("log %s: %w", name, err))
		}
	}
	return t.wrapError("copy logs", errors.Join(errs...))
}

func copyEnd(ctx context.Context, to string, from files.File, offset int64) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	st, err := from.On.Stat(ctx, from.Path)
	if err != nil {
		return err
	}
	if st.Size < offset { // the log was truncated
		offset = 0
	}
	in, err := from.On.Open(ctx, from.Path, max(offset, st.Size-maxLog))
	if err != nil {
		return err
	}
	defer in.Close()
	return atomicfile.Write(to, func(w io.Writer) error {
		_, err := io.Copy(w, io.LimitReader(in, maxLog))
		return err
	})
}

// Finish completes the tables, gives the directory its final name, and adds the trial to summary.json. ID, repetition
// and parameters come from the plan. If it fails, the trial does not count and earlier trials are unchanged. A trial
// that did not end ok does not replace an earlier attempt that did.
func (t *TrialWriter) Finish(trial Trial) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	trial.ID, trial.Repetition, trial.Parameters = t.planned.ID, t.planned.Repetition, t.planned.Parameters
	err := t.closeFiles()
	if err == nil {
		err = t.home.finishTrial(t.dir, trial)
	}
	return t.wrapError("finish", err)
}

func (w *Writer) finishTrial(dir string, trial Trial) error {
	if _, measured := w.previousAttempt(trial.ID); measured && trial.State != TrialOK { // the earlier attempt measured
		return os.RemoveAll(dir)
	}
	keepAs := w.listReplaced(&trial)
	if err := writeTrial(dir, trial); err != nil {
		return err
	}
	final := w.trialDir(trial.ID)
	if err := w.installTrial(dir, final, keepAs); err != nil {
		return err
	}
	return errors.Join(atomicfile.SyncDir(filepath.Dir(final)), w.recordTrial(trial))
}

func writeTrial(dir string, trial Trial) error {
	if trial.Traffic != nil {
		if err := writeJSON(filepath.Join(dir, trafficFile), trial.Traffic); err != nil {
			return err
		}
	}
	return writeJSON(filepath.Join(dir, trialFile), trial)
}

// Abandon removes the trial's directory. After Finish it does nothing.
func (t *TrialWriter) Abandon() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.closeFiles() // the files are removed next
	return os.RemoveAll(t.dir)
}

func (t *TrialWriter) closeFiles() error {
	var errs []error
	if t.timeline != nil {
		errs = append(errs, t.timeline.close())
	}
	if t.nodes != nil {
		errs = append(errs, t.nodes.close())
	}
	if t.network != nil {
		errs = append(errs, t.network.close())
	}
	if t.links != nil {
		errs = append(errs, t.links.close())
	}
	if t.directions != nil {
		errs = append(errs, t.directions.close())
	}
	if t.pools != nil {
		errs = append(errs, t.pools.close())
	}
	if t.errors != nil {
		errs = append(errs, t.errors.close())
	}
	if t.events != nil {
		errs = append(errs, t.events.Sync(), t.events.Close())
	}
	t.timeline, t.nodes, t.network, t.links, t.directions, t.pools, t.errors, t.events = nil, nil, nil, nil, nil, nil, nil, nil
	return errors.Join(errs...)
}

func (t *TrialWriter) wrapError(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("trial %d: %s: %w", t.planned.ID, doing, adviseDiskFull(err, t.home.Dir()))
}
