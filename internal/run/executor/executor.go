// Package executor is the vocabulary of engines: what a site has that starts work on its machines. A
// sweep hands tasks over and asks what has become of them; an engine decides where and when.
//
//	sweep ─ Submit ─► Engine ─ sbatch, kubectl, ssh ─► skerry run --resume DIR --only ... , somewhere
//	  ▲                 │                                        │
//	  └──── Poll ◄──────┘        results ─► the run directory ◄──┘
//
// An engine starts nothing again by its own count and judges no results: that is the sweep's.
package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Executor is a way to have tasks done. Its methods are called one at a time.
type Executor interface {
	// Check tells before anything is handed over why the engine cannot take work, and how much
	// it takes.
	Check(ctx context.Context) (Limits, error)
	// Submit hands a batch over, or its first tasks. ErrLater says that the engine takes no more at present.
	Submit(ctx context.Context, b Batch) (Submission, error)
	// Poll tells of those tasks of the submissions that the engine still knows, by their ID.
	Poll(ctx context.Context, of []Submission) (map[int]Status, error)
	// Cancel ends what has not ended.
	Cancel(ctx context.Context, of []Submission) error
	// Print writes what Submit would hand over, for a person to read, edit and submit, and returns the name by which
	// Find finds that, "" where it cannot be found.
	Print(w io.Writer, b Batch) (name string, err error)
	// Find is what the engine calls a printed batch of that name that a person has submitted, "" where none is there.
	Find(ctx context.Context, name string) (ref string, err error)
	// Close ends what the engine does in this process, and waits for it.
	Close() error
}

// OutputReader is an Engine that knows what a task's program said.
type OutputReader interface {
	// Said is the last line that a task printed, "" where that cannot be read from here.
	LastOutput(dir string, of Submission, task int) string
}

// ErrFull says that an engine takes no more tasks until some have ended.
var ErrFull = errors.New("the engine takes no more at present")

// ErrUnavailable says that an engine cannot be asked at all.
var ErrUnavailable = errors.New("no such engine here")

// ErrFatal says that no task can end well as things are: the sweep stops and cancels the others.
var ErrFatal = errors.New("no task can end well as things are")

// Limits are how much an engine takes.
type Limits struct {
	Batch int // tasks of one submission
	Total int // tasks that have not ended
	// Doubts are what is not as it should be, and does not keep the engine from taking work.
	Warning error
}

// RunDirectory is the run directory, for engines whose workers do not see it.
type RunDirectory interface {
	// Plan is a copy of the plan, packed, for those who measure these trials.
	PackPlan(trials []int) ([]byte, error)
	// Receive takes in the results among what a worker has printed, and returns the end of the rest.
	ReceiveResults(printed io.Reader) (said string, err error)
}

// Batch is what is handed over at once.
type Batch struct {
	Run    string // the name of the run directory
	Dir    string // the run directory, absolute
	Number int    // of the submission, from 1
	// File lists the trials of Tasks, a line a task, in their order.
	File  string
	Tasks []Task
	// Again runs trials again that have a suspect result.
	Rerun bool
	// Takes is how long the longest task is expected to take, 0 where nobody knows.
	ExpectedTime time.Duration
	// MemoryBytes is what the nodes of the largest lab may use, 0 where they have no limit.
	MemoryBytes int64
	// Token stands in the file TokenFile of the run directory: who reads another one there, or none,
	// sees another directory.
	Token string
	// Exe is the skerry program, Cwd where the run was started.
	Exe, Cwd string
	// Avoid are machines on which tasks end without results.
	Exclude []string
	// StateDir is asked for by --state-dir, "" for the default.
	StateDir string
}

// Task is one task of a batch.
type Task struct {
	ID     int
	Trials []int
}

// Submission is a batch as the engine knows it.
type Submission struct {
	Number int       `json:"number"`
	Ref    string    `json:"ref"` // what the engine calls it: the number of a job, the name of a Job
	At     time.Time `json:"at"`
	Rerun  bool      `json:"again,omitempty"`
	// Printed says that a person submits it, or nobody; Ref is then the name by which it is found.
	Printed bool  `json:"printed,omitempty"`
	Tasks   []int `json:"tasks"` // IDs, in the order of the batch
}

// Submission is the submission of the batch's first n tasks, which the engine calls ref.
func (b Batch) Submission(ref string, n int) Submission {
	s := Submission{Number: b.Number, Ref: ref, At: time.Now(), Rerun: b.Rerun}
	for _, t := range b.Tasks[:n] {
		s.Tasks = append(s.Tasks, t.ID)
	}
	return s
}

// Trials are those of all its tasks.
func (b Batch) Trials() (all []int) {
	for _, t := range b.Tasks {
		all = append(all, t.Trials...)
	}
	return all
}

// State is how a task stands with its engine.
type State string

// The states.
const (
	Waiting   State = "waiting"
	Running   State = "running"
	Ended     State = "ended"     // by itself; its result tells how
	Failed    State = "failed"    // its program did
	Cancelled State = "cancelled" // by a person
	Preempted State = "preempted" // for work that is more urgent
	TimedOut  State = "timed out"
	Lost      State = "lost" // with its node, or nobody knows how
)

// Final tells whether the engine does nothing more for a task in this state.
func (s State) Final() bool { return s != Waiting && s != Running }

// Status is how a task stands.
type Status struct {
	State   State
	Machine string // the machine, "" before it has one
	Reason  string // in words, where the engine says so
}

// Folder is where in a run directory an engine's files are: scripts, task files, what tasks said.
const Folder = "engine"

// TokenFile is the file of a run directory that tells it from another one.
const TokenFile = Folder + "/token"

// ExitNotShared is how a task's program ends where the run directory is not the one of the sweep.
const ExitNotShared = 77

// TaskVariable is the environment variable that tells a worker what its engine calls its task.
const TaskVariable = "SKERRY_TASK"

// MachineVariable is the environment variable that tells a worker the name of its machine, where the worker sees another
// one: a pod's own in place of its node's.
const MachineVariable = "SKERRY_MACHINE"

// PrintedSuffix ends the name of a file that holds a batch as it was printed.
const PrintedSuffix = ".printed"

// Path is a file of the batch below Folder.
func (b Batch) Path(suffix string) string {
	return filepath.Join(b.Dir, Folder, fmt.Sprintf("%d%s", b.Number, suffix))
}

// Name is the batch's own among all batches of all runs, of letters, digits and "-".
func (b Batch) Name() string {
	return fmt.Sprintf("skerry-%s-%d", strings.ToLower(b.Token[:min(len(b.Token), 10)]), b.Number)
}

// ParseIndexes are the elements of an array that an engine names: "7", or "3,9-120", also as Slurm has those that wait: "[3,9-120%3]".
func ParseIndexes(text string) []int {
	text, _, _ = strings.Cut(strings.Trim(text, "[]"), "%")
	var all []int
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		for i := first; i <= last; i++ {
			all = append(all, i)
		}
	}
	return all
}
