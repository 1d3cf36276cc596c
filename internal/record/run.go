package record

import (
	"encoding/json"
	"time"
)

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
