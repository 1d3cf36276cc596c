// Package executor defines the interface of executors: systems that start tasks on other machines, such as
// a Slurm cluster. Files, flags and JSON call an executor an engine.
//
//	dispatch ─ Submit ─► Executor ─ sbatch, kubectl, ssh ─► skerry run --resume DIR --only ..., on a worker
//	   ▲                    │                                        │
//	   └────── Poll ◄───────┘        results ─► the run directory ◄──┘
//
// An executor neither restarts tasks nor judges results: package dispatch does.
package executor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry/internal/base/advice"
)

// Executor runs tasks. Its methods are not called concurrently.
type Executor interface {
	// Check returns how many tasks the executor accepts, or why it accepts none.
	Check(ctx context.Context) (Capacity, error)
	// Submit submits a batch, or its first tasks. ErrFull means that no more tasks are accepted for now.
	Submit(ctx context.Context, b Batch) (Submission, error)
	// Poll returns the status, by task ID, of the tasks that the executor still knows.
	Poll(ctx context.Context, of []Submission) (map[int]Status, error)
	// Cancel cancels all unfinished tasks.
	Cancel(ctx context.Context, of []Submission) error
	// Print writes what Submit would submit, for a user to edit and submit. It returns the name for Find, ""
	// if such a batch cannot be found.
	Print(w io.Writer, b Batch) (name string, err error)
	// Find returns the reference of a printed batch that a user has submitted, "" if there is none.
	Find(ctx context.Context, name string) (ref string, err error)
	// Close stops what the executor does in this process, and waits for it.
	Close() error
}

// OutputReader is an Executor that can read the output of tasks.
type OutputReader interface {
	// LastOutput returns the last line that a task printed, "" if it cannot be read from here.
	LastOutput(dir string, of Submission, task int) string
}

// ErrFull means that an executor accepts no more tasks until some have ended.
var ErrFull = errors.New("the engine accepts no more tasks for now")

// ErrUnavailable means that an executor cannot be used at all.
var ErrUnavailable = errors.New("engine not available")

// ErrFatal means that no task can succeed: the run stops and the other tasks are cancelled.
var ErrFatal = errors.New("no task can succeed")

// Capacity is how much an executor accepts.
type Capacity struct {
	Batch int // tasks per submission
	Total int // unfinished tasks
	// Warning describes problems that do not prevent submissions.
	Warning error
}

// RunDirectory gives access to the run for executors whose workers do not share a file system with it.
type RunDirectory interface {
	// PackPlan returns a packed copy of the plan, for workers that measure these trials.
	PackPlan(trials []int) ([]byte, error)
	// ReceiveResults stores the results in a worker's output, and returns the end of the other output.
	ReceiveResults(printed io.Reader) (output string, err error)
}

// Batch is a set of tasks that is submitted at once.
type Batch struct {
	Run    string // name of the run directory
	Dir    string // absolute path of the run directory
	Number int    // of the submission, from 1
	// File lists the trials of each task, one line per task.
	File  string
	Tasks []Task
	// Rerun also measures trials that have a suspect result.
	Rerun bool
	// NoLab means that all tasks drive clusters that Skerry did not start: they need no rights, and the machine's network.
	NoLab bool
	// ExpectedTime of the longest task; 0 if unknown.
	ExpectedTime time.Duration
	// MemoryBytes is the memory limit of the largest lab's nodes; 0 for no limit.
	MemoryBytes int64
	// Token is the content of TokenFile. A worker that reads anything else does not see the run directory.
	Token string
	// Exe is the skerry program, Cwd the directory in which the run was started.
	Exe, Cwd string
	// Exclude lists machines whose tasks end without results.
	Exclude []string
	// StateDir is the value of --state-dir, "" for the default.
	StateDir string
}

type Task struct {
	ID     int
	Trials []int
}

// Submission is a batch that was submitted.
type Submission struct {
	Number int       `json:"number"`
	Ref    string    `json:"ref"` // executor's own reference, such as a job number
	At     time.Time `json:"at"`
	Rerun  bool      `json:"again,omitempty"`
	// Printed means that a user may submit the batch; Ref is then the name for Find.
	Printed bool  `json:"printed,omitempty"`
	Tasks   []int `json:"tasks"` // IDs, in the order of the batch
}

// Submission returns the submission of the batch's first n tasks.
func (b Batch) Submission(ref string, n int) Submission {
	s := Submission{Number: b.Number, Ref: ref, At: time.Now(), Rerun: b.Rerun}
	for _, t := range b.Tasks[:n] {
		s.Tasks = append(s.Tasks, t.ID)
	}
	return s
}

// TimeLimit returns how long the longest task may take, 0 if unknown. Other machines are slower, and the first
// trial on a machine fills caches.
func (b Batch) TimeLimit() time.Duration {
	if b.ExpectedTime == 0 {
		return 0
	}
	return 3*b.ExpectedTime + 10*time.Minute
}

// Trials returns the trials of all tasks.
func (b Batch) Trials() (all []int) {
	for _, t := range b.Tasks {
		all = append(all, t.Trials...)
	}
	return all
}

// State is the state of a task.
type State string

const (
	Waiting   State = "waiting"
	Running   State = "running"
	Ended     State = "ended"     // exited on its own; its result has the details
	Failed    State = "failed"    // its program failed
	Cancelled State = "cancelled" // by a user
	Preempted State = "preempted" // for more urgent work
	TimedOut  State = "timed out"
	Lost      State = "lost" // with its machine, or for an unknown reason
)

// Final reports whether the executor is done with the task.
func (s State) Final() bool { return s != Waiting && s != Running }

// Status is the status of a task.
type Status struct {
	State   State
	Machine string // "" before it has one
	Reason  string // as the executor gives it
}

// Folder is the directory of executor files in the run directory: scripts, task files and output.
const Folder = "engine"

// TokenFile identifies the run directory to workers.
const TokenFile = Folder + "/token"

// ExitNotShared is the exit code of a task that does not see the run directory.
const ExitNotShared = 77

// TaskVariable is the environment variable with the executor's name of the task.
const TaskVariable = "SKERRY_TASK"

// MachineVariable is the environment variable with the machine's name, for workers whose host name differs,
// such as pods.
const MachineVariable = "SKERRY_MACHINE"

// PrintedSuffix is the suffix of files with printed batches.
const PrintedSuffix = ".printed"

// Path returns the path of the batch's file with a suffix.
func (b Batch) Path(suffix string) string {
	return filepath.Join(b.Dir, Folder, fmt.Sprintf("%d%s", b.Number, suffix))
}

// Name returns a name that is unique among all batches of all runs, of letters, digits and "-".
func (b Batch) Name() string {
	return fmt.Sprintf("skerry-%s-%d", strings.ToLower(b.Token[:min(len(b.Token), 10)]), b.Number)
}

// FormatTrials formats trials as --only accepts them: "3,7".
func FormatTrials(ids []int) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = strconv.Itoa(id)
	}
	return strings.Join(words, ",")
}

// LastLine returns the last line of a program's output.
func LastLine(output string) string {
	output = strings.TrimSpace(output)
	return output[strings.LastIndexByte(output, '\n')+1:]
}

// ParseIndexes parses a list of array elements: "7", "3,9-120", or Slurm's "[3,9-120%3]" for waiting ones.
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

// clientTimeout bounds a call of a client; an overloaded controller answers within seconds.
const clientTimeout = 2 * time.Minute

// Client runs the command-line clients of an executor with the user's login and context.
type Client struct {
	// Advice is given if a program is missing.
	Advice string
	// Env is added to the environment. Drop, if set, selects variables to remove.
	Env  []string
	Drop func(name string) bool
}

func (c Client) Environ() []string {
	env := os.Environ()
	if c.Drop != nil {
		env = slices.DeleteFunc(env, func(v string) bool {
			name, _, _ := strings.Cut(v, "=")
			return c.Drop(name)
		})
	}
	return append(env, c.Env...)
}

// Run returns what the program printed to standard output.
func (c Client) Run(ctx context.Context, stdin io.Reader, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, stderr bytes.Buffer
	cmd.Env = c.Environ()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &stderr
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, advice.With(fmt.Errorf("%w: %w", ErrUnavailable, err), "%s", c.Advice)
	}
	if err != nil {
		return out.Bytes(), fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(stderr.String()))
	}
	return out.Bytes(), nil
}
