package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
)

// DescribeMachine describes the host of this process.
func DescribeMachine() (Machine, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Machine{}, fmt.Errorf("reading the name of the kernel: %w", err)
	}
	m := Machine{
		Name:   unix.ByteSliceToString(u.Nodename[:]),
		Kernel: unix.ByteSliceToString(u.Release[:]),
		Cores:  runtime.NumCPU(),
		CPU:    firstValue("/proc/cpuinfo", ":", "model name", "Model", "cpu"),
		OS:     strings.Trim(firstValue("/etc/os-release", "=", "PRETTY_NAME"), `"`),
	}
	kb, _, _ := strings.Cut(firstValue("/proc/meminfo", ":", "MemTotal"), " ")
	if n, err := strconv.ParseInt(kb, 10, 64); err == nil {
		m.MemoryBytes = n << 10
	}
	if m.CPU == "" {
		m.CPU = runtime.GOARCH
	}
	return m, nil
}

// TrialMachine is the machine that measured a trial.
type TrialMachine struct {
	Machine
	// Task is the engine's name for the task of the trial, "" without an engine.
	Task string `json:"task,omitempty"`
	// Engine emulated the links; Warnings are limits of the machine.
	Engine   Engine   `json:"engine"`
	Warnings []string `json:"warnings,omitempty"`
	// Settings are the kernel settings of the nodes, such as TCP congestion control and buffers; nil in runs of older
	// versions.
	Settings map[string]string `json:"settings,omitempty"`
	// Database is the version that ran.
	Database string `json:"database,omitempty"`
	// Program is the SHA-256 sum of the skerry program that measured, in hexadecimal.
	Program string `json:"program,omitempty"`
	// Calibration was measured before the task's first trial; nil if it was not measured.
	Calibration *Calibration `json:"calibration,omitempty"`
}

// Calibration is a machine's speed for a fixed piece of work (run/runner).
type Calibration struct {
	// DriverOps is operations of the load driver without a database, per second of CPU time.
	DriverOps float64 `json:"driver_ops_per_cpu_s"`
	// Round trips of one byte over loopback, in microseconds.
	LoopbackP50US float64 `json:"loopback_p50_us"`
	LoopbackP99US float64 `json:"loopback_p99_us"`
}

// firstValue returns the value of the first of the keys that a file of "key SEP value" lines has, or "".
func firstValue(path, sep string, keys ...string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	found := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		k, v, ok := strings.Cut(s.Text(), sep)
		if k = strings.TrimSpace(k); ok && found[k] == "" {
			found[k] = strings.TrimSpace(v)
		}
	}
	for _, k := range keys {
		if found[k] != "" {
			return found[k]
		}
	}
	return ""
}

func (r *Run) fillMachine() error {
	if r.Versions.Go == "" {
		r.Versions.Go = runtime.Version()
	}
	if r.Host != (Machine{}) {
		return nil
	}
	var err error
	r.Host, err = DescribeMachine()
	return err
}

const RunSchema = "skerry/run/v1"

// Run is run.json: the experiment, the machine, the versions, and the plan.
type Run struct {
	Schema string `json:"schema"`
	// Name is the experiment's name; the directory is named after it and the start.
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Command is the command line, program first.
	Command  []string  `json:"command"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished,omitzero"` // absent while it runs and when it was killed
	// Resumed lists the times at which the run was resumed.
	Resumed  []time.Time `json:"resumed,omitempty"`
	Versions Versions    `json:"versions"`
	Host     Machine     `json:"host"`
	Engine   Engine      `json:"engine"`
	// Seed is the experiment's seed; the plan has the seed of every trial.
	Seed uint64 `json:"seed"`
	// Warnings are settings of the experiment without effect, and limits of the machine.
	Warnings []string `json:"warnings,omitempty"`
	// Experiment is the expanded experiment: defaults filled in, --set applied.
	Experiment json.RawMessage `json:"experiment,omitempty"`
	// File is the experiment as its author wrote it.
	File File `json:"file"`
	// Files are the SHA-256 sums, in hexadecimal, of the files that the experiment names, by their path relative to the
	// experiment's file.
	Files map[string]string `json:"files,omitempty"`
	// Plan lists the trials in the order of execution.
	Plan []Planned `json:"plan"`
}

// Versions of the software that made the run.
type Versions struct {
	Skerry string `json:"skerry"`
	// Program is the SHA-256 sum of the program, in hexadecimal; "" in runs of older versions.
	Program string `json:"program,omitempty"`
	Go      string `json:"go"`
	// Databases maps names of databases to versions.
	Databases map[string]string `json:"databases,omitempty"`
}

// Machine is the host of the run.
type Machine struct {
	Name        string `json:"name"`
	OS          string `json:"os"`     // "Debian GNU/Linux 12 (bookworm)"
	Kernel      string `json:"kernel"` // release
	CPU         string `json:"cpu"`    // model
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memory_bytes"`
}

// Engine is the selected link engine and the reason.
type Engine struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// File is a text file given to a run.
type File struct {
	Path string `json:"path,omitempty"`
	Text string `json:"text,omitempty"`
	// Set and Fast are the options --set and --fast.
	Set  []string `json:"set,omitempty"`
	Fast bool     `json:"fast,omitempty"`
	// From are the database builds of the option --from.
	From []string `json:"from,omitempty"`
}

// Planned is one trial of the plan.
type Planned struct {
	ID         int `json:"id"`         // from 1, in the order of the experiment file; names the trial's directory
	Cell       int `json:"cell"`       // from 1, in the order of the matrix; the same in every repetition
	Repetition int `json:"repetition"` // from 1
	// Task numbers tasks from 1. The trials of a task share a lab and run in one place, one after another.
	Task       int            `json:"task,omitempty"`
	Seed       uint64         `json:"seed"`
	Parameters map[string]any `json:"parameters"`
}

// Task is the part of a plan that runs in one place: the trials that share a lab, or a single trial.
type Task struct {
	// ID is Planned.Task of its trials.
	ID int
	// Trials are in the order of execution.
	Trials []Planned
}

// Tasks divides trials of a plan into tasks and keeps their order.
func Tasks(trials []Planned) []Task {
	var all []Task
	at := make(map[int]int, len(trials))
	for _, p := range trials {
		if p.Task == 0 { // a run from before tasks
			all = append(all, Task{ID: p.ID, Trials: []Planned{p}})
			continue
		}
		i, known := at[p.Task]
		if !known {
			i = len(all)
			at[p.Task] = i
			all = append(all, Task{ID: p.Task})
		}
		all[i].Trials = append(all[i].Trials, p)
	}
	return all
}

func (t Task) IDs() []int {
	ids := make([]int, len(t.Trials))
	for i, p := range t.Trials {
		ids[i] = p.ID
	}
	return ids
}

func findPlanned(plan []Planned, id int) (Planned, error) {
	i := slices.IndexFunc(plan, func(p Planned) bool { return p.ID == id })
	if i < 0 {
		return Planned{}, ErrNoTrial
	}
	return plan[i], nil
}

const NotesSchema = "skerry/notes/v1"

const notesFile = "notes.json"

// Notes is notes.json: a user's notes on a run. They may change at any time, also during the run.
type Notes struct {
	Schema string `json:"schema"`
	// Revision counts the changes; a writer states the revision that it read.
	Revision int       `json:"revision"`
	Changed  time.Time `json:"changed,omitzero"`
	Note     string    `json:"note,omitempty"`
	Tags     []string  `json:"tags,omitempty"`
}

var (
	// ErrNotes means that a note is too long or a tag is not a word.
	ErrNotes = errors.New("invalid notes")
	// ErrChanged means that the notes were changed concurrently.
	ErrChanged = errors.New("notes were changed concurrently")
)

const (
	noteBytes = 64 << 10
	tagBytes  = 64
	tagsMost  = 32
)

// ReadNotes reads the notes of a run directory, empty if there are none.
func ReadNotes(dir string) (Notes, error) {
	var n Notes
	err := readJSON(filepath.Join(dir, notesFile), NotesSchema, &n)
	if errors.Is(err, fs.ErrNotExist) {
		return Notes{Schema: NotesSchema}, nil
	}
	if err != nil {
		return n, fmt.Errorf("read notes of %s: %w", dir, err)
	}
	return n, nil
}

// WriteNotes replaces the notes of a run directory atomically, and returns them normalised: trimmed, tags without
// duplicates. n.Revision is the revision that the caller read; ErrChanged means that it is outdated.
func WriteNotes(dir string, n Notes) (Notes, error) {
	was, err := ReadNotes(dir)
	if err != nil && !errors.Is(err, ErrDamaged) { // damaged notes are replaced
		return n, err
	}
	if err == nil && was.Revision != n.Revision {
		return was, advice.With(ErrChanged, "reload the notes, then change them")
	}
	if n, err = n.normalize(); err != nil {
		return n, err
	}
	n.Schema, n.Revision, n.Changed = NotesSchema, n.Revision+1, time.Now()
	if err := writeJSON(filepath.Join(dir, notesFile), n); err != nil {
		return n, adviseDiskFull(err, dir)
	}
	return n, nil
}

func (n Notes) normalize() (Notes, error) {
	n.Note = strings.TrimSpace(n.Note)
	if len(n.Note) > noteBytes || !utf8.ValidString(n.Note) {
		return n, fmt.Errorf("%w: note exceeds %d KiB or is not UTF-8", ErrNotes, noteBytes>>10)
	}
	var tags []string
	for _, t := range n.Tags {
		t = strings.TrimSpace(t)
		if t == "" || slices.Contains(tags, t) {
			continue
		}
		if len(t) > tagBytes || !utf8.ValidString(t) || strings.ContainsFunc(t, func(r rune) bool { return !unicode.IsGraphic(r) || r == ',' }) {
			return n, fmt.Errorf("%w: tag must have at most %d bytes and no commas", ErrNotes, tagBytes)
		}
		tags = append(tags, t)
	}
	if len(tags) > tagsMost {
		return n, fmt.Errorf("%w: %d tags, at most %d", ErrNotes, len(tags), tagsMost)
	}
	n.Tags = tags
	return n, nil
}
