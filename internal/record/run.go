package record

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// DescribeMachine describes the host that the process runs on.
func DescribeMachine() (Machine, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Machine{}, fmt.Errorf("asking the kernel for its name: %w", err)
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

// TrialMachine is where a trial was measured.
type TrialMachine struct {
	Machine
	// Task is what an engine calls the task that the trial was part of, "" where none ran it.
	Task string `json:"task,omitempty"`
	// Engine emulated the links; Warnings are what the machine could not give.
	Engine   Engine   `json:"engine"`
	Warnings []string `json:"warnings,omitempty"`
	// Settings are the kernel's as nodes had them: TCP's congestion control, its buffers and others; nil in runs of
	// older versions.
	Settings map[string]string `json:"settings,omitempty"`
	// Database is the version that ran.
	Database string `json:"database,omitempty"`
	// Program is the SHA-256 sum of the skerry program that measured, in hexadecimal.
	Program string `json:"program,omitempty"`
	// Calibration was measured before the task's first trial; nil where none was.
	Calibration *Calibration `json:"calibration,omitempty"`
}

// Calibration is what a machine does of work that is the same everywhere (run/runner).
type Calibration struct {
	// DriverOps is operations of the load driver against no database, per second of processor time.
	DriverOps float64 `json:"driver_ops_per_cpu_s"`
	// Round trips of a byte over loopback, in microseconds.
	LoopbackP50US float64 `json:"loopback_p50_us"`
	LoopbackP99US float64 `json:"loopback_p99_us"`
}

// HashProgram is the SHA-256 sum of the program that runs, in hexadecimal.
func HashProgram() (string, error) {
	f, err := os.Open("/proc/self/exe") // what runs, also after its file was replaced
	if err != nil {
		return "", fmt.Errorf("reading this program: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("reading this program: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// firstValue returns the value of the first of the keys that a file of "key SEP value"
// lines has, or "".
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

// fillMachine fills in what a caller of Create left open.
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

// RunSchema versions run.json.
const RunSchema = "skerry/run/v1"

// Run is run.json: what was run, where, with what, and in which order.
type Run struct {
	Schema string `json:"schema"`
	// Name is the experiment's; the directory is named after it and the start.
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Command is the command line, the program first.
	Command  []string  `json:"command"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished,omitzero"` // absent while it runs and when it was killed
	// Resumed holds the moments at which the run was taken up again.
	Resumed  []time.Time `json:"resumed,omitempty"`
	Versions Versions    `json:"versions"`
	Host     Machine     `json:"host"`
	Engine   Engine      `json:"engine"`
	// Seed is the experiment's; every trial's own seed stands in the plan.
	Seed uint64 `json:"seed"`
	// Warnings are settings of the experiment that have no effect, and what the machine could not give.
	Warnings []string `json:"warnings,omitempty"`
	// Experiment is the experiment as expanded: defaults filled in, --set applied.
	Experiment json.RawMessage `json:"experiment,omitempty"`
	// File is the experiment as its author wrote it.
	File File `json:"file"`
	// Files are the SHA-256 sums, in hexadecimal, of the files that the experiment names, by
	// their path relative to its own.
	Files map[string]string `json:"files,omitempty"`
	// Plan lists the trials in the order in which they are run.
	Plan []Planned `json:"plan"`
}

// Versions of the software that made the run.
type Versions struct {
	Skerry string `json:"skerry"`
	// Program is the SHA-256 sum of the program, in hexadecimal; "" in runs of older versions.
	Program string `json:"program,omitempty"`
	Go      string `json:"go"`
	// Databases maps a database's name to the version that ran.
	Databases map[string]string `json:"databases,omitempty"`
}

// Machine is the host that the run was made on.
type Machine struct {
	Name        string `json:"name"`
	OS          string `json:"os"`     // "Debian GNU/Linux 12 (bookworm)"
	Kernel      string `json:"kernel"` // release
	CPU         string `json:"cpu"`    // model
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memory_bytes"`
}

// Engine is the link engine that was chosen and the reason in a sentence.
type Engine struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// File is a text file that a run was given.
type File struct {
	Path string `json:"path,omitempty"`
	Text string `json:"text,omitempty"`
	// Set and Fast are what was given beside it: --set and --fast.
	Set  []string `json:"set,omitempty"`
	Fast bool     `json:"fast,omitempty"`
	// From are the builds of databases that were asked for: --from.
	From []string `json:"from,omitempty"`
}

// Planned is one trial of the plan.
type Planned struct {
	ID         int `json:"id"`         // from 1, in the order of the experiment file; names the trial's directory
	Cell       int `json:"cell"`       // from 1, in the order of the matrix; the same in every repetition
	Repetition int `json:"repetition"` // from 1
	// Task is from 1; trials of the same one share a lab, and run in one place one after another.
	Task       int            `json:"task,omitempty"`
	Seed       uint64         `json:"seed"`
	Parameters map[string]any `json:"parameters"`
}

// Task is the part of a plan that is run in one place, in one go: trials that share a lab, else
// a single one.
type Task struct {
	// ID is that of its trials (Planned.Task).
	ID int
	// Trials are in the order of running.
	Trials []Planned
}

// Tasks cuts trials, of a whole plan or what is left of one, into tasks, in their order.
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

// IDs are the trials of the task.
func (t Task) IDs() []int {
	ids := make([]int, len(t.Trials))
	for i, p := range t.Trials {
		ids[i] = p.ID
	}
	return ids
}

// findPlanned is the planned trial of that id.
func findPlanned(plan []Planned, id int) (Planned, error) {
	i := slices.IndexFunc(plan, func(p Planned) bool { return p.ID == id })
	if i < 0 {
		return Planned{}, ErrNoTrial
	}
	return plan[i], nil
}
