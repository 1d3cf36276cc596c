package record

import (
	"bufio"
	"bytes"
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
	"syscall"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/base/flock"
	"skerry/internal/topology"
)

// Dir is a run directory that is open for reading.
type Dir struct {
	Path    string
	Run     Run
	Summary Summary
	// Running is true if a Writer holds the directory.
	Running bool
	// Unfinished lists the trials that began and did not end: the current trial, or that of a killed run.
	Unfinished []int
	// Notes describe damage that reading worked around.
	Notes []string
}

// Open reads a run directory, finished or not. Its errors wrap ErrNotRun, ErrNewer or ErrDamaged.
func Open(dir string) (*Dir, error) {
	path, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, advice.With(fmt.Errorf("opening run %s: %w", dir, missingDirError{}),
			"create one with `skerry run`; runs are in runs/ unless --out names another directory")
	}
	if err != nil {
		return nil, fmt.Errorf("opening run %s: %w", dir, err)
	}
	d := &Dir{Path: path}
	if err := d.read(); err != nil {
		return nil, fmt.Errorf("opening run %s: %w", dir, err)
	}
	return d, nil
}

func (d *Dir) read() error {
	if err := d.readRun(); err != nil {
		return err
	}
	if err := d.readSummary(); err != nil {
		return err
	}
	d.Running = IsRunning(d.Path)
	return d.readTrials()
}

func (d *Dir) readRun() error {
	err := readJSON(filepath.Join(d.Path, runFile), RunSchema, &d.Run)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return advice.With(fmt.Errorf("%w: no %s", ErrNotRun, runFile),
			"give the directory of one run, such as runs/latest")
	}
	return err
}

// readSummary reads summary.json. If it is missing or damaged, the trials' own files replace it.
func (d *Dir) readSummary() error {
	err := readJSON(filepath.Join(d.Path, summaryFile), SummarySchema, &d.Summary)
	switch {
	case errors.Is(err, ErrDamaged):
		d.Notes = append(d.Notes, summaryFile+" is damaged; the results were read from the trials' own files")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err != nil {
		d.Summary = Summary{Schema: SummarySchema, Experiment: d.Run.Name, Run: filepath.Base(d.Path), Planned: len(d.Run.Plan)}
	}
	return nil
}

// readTrials reads the trials that ended without reaching summary.json, and lists those that did not end.
func (d *Dir) readTrials() error {
	trials := map[int]Trial{}
	for _, t := range d.Summary.Trials {
		trials[t.ID] = t
	}
	entries, err := os.ReadDir(filepath.Join(d.Path, trialsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		name, isPartial := strings.CutSuffix(e.Name(), partial)
		id, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if isPartial {
			d.Unfinished = append(d.Unfinished, id)
			continue
		}
		if _, known := trials[id]; known {
			continue
		}
		var t Trial
		if err := readJSON(filepath.Join(d.trialDir(id), trialFile), "", &t); err != nil || t.ID != id {
			d.Notes = append(d.Notes, fmt.Sprintf("trial %d has no readable %s and is left out", id, trialFile))
			continue
		}
		trials[id] = t
	}
	begun, err := listAttempts(d.Path)
	if err != nil {
		return err
	}
	for _, a := range begun {
		if _, ended := trials[a.id]; !ended {
			d.Unfinished = append(d.Unfinished, a.id)
		}
	}
	slices.Sort(d.Unfinished)
	d.Unfinished = slices.Compact(d.Unfinished)
	d.Summary.Trials = make([]Trial, 0, len(trials))
	for _, id := range slices.Sorted(maps.Keys(trials)) {
		d.Summary.Trials = append(d.Summary.Trials, trials[id])
	}
	d.Summary.Complete = d.Summary.covers(d.Run.Plan)
	return nil
}

func trialDir(dir string, id int) string { return filepath.Join(dir, trialsDir, strconv.Itoa(id)) }

func (d *Dir) trialDir(id int) string { return trialDir(d.Path, id) }

// Timeline reads the seconds of a trial; a trial without a timeline is no error.
func (d *Dir) Timeline(id int) ([]Second, error) {
	return optional(readTable[Second](filepath.Join(d.trialDir(id), timelineFile)))
}

func (d *Dir) Nodes(id int) ([]NodeSecond, error) {
	return optional(readTable[NodeSecond](filepath.Join(d.trialDir(id), nodesFile)))
}

// Network reads network.parquet of a trial. It is empty without an overlay or real links.
func (d *Dir) Network(id int) ([]NetworkSecond, error) {
	return optional(readTable[NetworkSecond](filepath.Join(d.trialDir(id), networkFile)))
}

// Links reads the seconds of a trial's real links.
func (d *Dir) Links(id int) ([]LinkSecond, error) {
	return optional(readTable[LinkSecond](filepath.Join(d.trialDir(id), linksFile)))
}

// Directions reads the seconds of a trial's link directions; empty for older runs.
func (d *Dir) Directions(id int) ([]DirectionSecond, error) {
	return optional(readTable[DirectionSecond](filepath.Join(d.trialDir(id), directionsFile)))
}

// PoolSeconds reads the seconds of a trial's workloads; empty for a single workload.
func (d *Dir) PoolSeconds(id int) ([]PoolSecond, error) {
	return optional(readTable[PoolSecond](filepath.Join(d.trialDir(id), poolsFile)))
}

// ErrorSeconds reads the errors of a trial, second by second.
func (d *Dir) ErrorSeconds(id int) ([]ErrorSecond, error) {
	return optional(readTable[ErrorSecond](filepath.Join(d.trialDir(id), errorsFile)))
}

// Topology reads the cloud of a trial; nil if it was not recorded.
func (d *Dir) Topology(id int) (*topology.Topology, error) {
	var t topology.Topology
	err := readJSON(filepath.Join(d.trialDir(id), topologyFile), "", &t)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// Events reads the last line of every event of a trial, in the order of their first lines. A truncated last line is
// ignored.
func (d *Dir) Events(id int) ([]Event, error) {
	path := filepath.Join(d.trialDir(id), eventsFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var events []Event
	s := bufio.NewScanner(bytes.NewReader(b))
	s.Buffer(nil, len(b)+1)
	for n := 1; s.Scan(); n++ {
		if len(s.Bytes()) == 0 {
			continue
		}
		var e Event
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			if !bytes.HasSuffix(b, []byte("\n")) && bytes.HasSuffix(b, s.Bytes()) {
				break
			}
			return events, fmt.Errorf("%s: %w: line %d: %w", path, ErrDamaged, n, err)
		}
		events = append(events, e)
	}
	return latestEvents(events), nil
}

func optional[T any](rows []T, err error) ([]T, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return rows, err
}

// readJSON reads a file and checks its schema field, unless schema is "".
func readJSON(path, schema string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if schema != "" {
		if err := checkSchema(b, schema); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w: %w", filepath.Base(path), ErrDamaged, describeJSONError(err, len(b)))
	}
	return nil
}

func describeJSONError(err error, size int) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("byte %d of %d: %w", syntax.Offset, size, err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("unexpected end: %w", err)
	}
	return err
}

func checkSchema(b []byte, want string) error {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, describeJSONError(err, len(b)))
	}
	if head.Schema == want {
		return nil
	}
	kind, version := cutVersion(want)
	if k, v := cutVersion(head.Schema); k == kind && v > version {
		return advice.With(fmt.Errorf("%w: schema %s, this skerry reads up to %s", ErrNewer, head.Schema, want),
			"read it with the skerry that wrote it, or a newer one")
	}
	return fmt.Errorf("%w: schema %q, want %q", ErrNotRun, head.Schema, want)
}

func cutVersion(schema string) (kind string, version int) {
	at := strings.LastIndex(schema, "/v")
	if at < 0 {
		return schema, 0
	}
	version, err := strconv.Atoi(schema[at+2:])
	if err != nil {
		return schema, 0
	}
	return schema[:at], version
}

// IsRunning reports whether a Writer holds a run's directory.
func IsRunning(dir string) bool {
	held, err := flock.IsHeld(dir)
	return err == nil && held
}

// Errors that Create, Resume, Open and the writers wrap.
var (
	ErrNotRun   = errors.New("not a run directory")
	ErrNewer    = errors.New("written by a newer skerry")
	ErrDamaged  = errors.New("damaged")
	ErrBusy     = errors.New("another skerry writes to it")
	ErrFinished = errors.New("all trials of the plan are done")
	ErrNoTrial  = errors.New("no such trial")
)

func adviseDiskFull(err error, dir string) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("the disk is full: %w", err)
		return advice.With(err, "free some space and continue with `skerry run --resume %s`; finished trials are kept", dir)
	}
	return err
}

type missingDirError struct{}

func (missingDirError) Error() string { return "no such directory" }

func (missingDirError) Is(target error) bool { return target == ErrNotRun || target == fs.ErrNotExist }
