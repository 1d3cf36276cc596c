// Package slurm runs tasks on a Slurm cluster through its command-line clients. A batch is a job array, a
// task one element of it with its own node.
package slurm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"skerry/internal/base/advice"
	"skerry/internal/run/executor"
)

// Executor is a Slurm cluster.
type Executor struct {
	// Partition of the jobs, "" for the cluster's default.
	Partition string
	// Options are passed to sbatch ("--account=lab").
	Options []string

	home   executor.RunDirectory
	output bool // results come from the jobs' output; otherwise nodes share the run directory
	client executor.Client

	ctx      context.Context // of running fetches; Close cancels it
	stop     context.CancelFunc
	fetching sync.WaitGroup

	checked map[string]bool // failed tasks whose exit code was checked
	mu      sync.Mutex
	fetched map[string]*fetchedTask // by array element, "JOB_INDEX"
}

// New returns the cluster of this machine's sbatch. results is "" or "shared" if nodes see the run
// directory, "output" if results are fetched from the output of jobs.
func New(partition string, options []string, results string, home executor.RunDirectory) (*Executor, error) {
	if results != "" && results != "shared" && results != "output" {
		return nil, advice.With(fmt.Errorf("invalid --results %q for slurm", results), "use one of: shared, output")
	}
	e := &Executor{Partition: partition, Options: options, home: home, output: results == "output",
		checked: map[string]bool{}, fetched: map[string]*fetchedTask{},
		// Otherwise squeue truncates the ranges of waiting tasks at 64 characters.
		client: executor.Client{
			Env: []string{"SLURM_BITSTR_LEN=0"}, Drop: isDropped,
			Advice: "run skerry where sbatch is installed, such as the cluster's login node, or print the script with --dry-run",
		}}
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e, nil
}

// Slurm's defaults, for clusters that do not report their limits.
const (
	defaultArray = 1001  // MaxArraySize: indexes are below it
	defaultJobs  = 10000 // MaxJobCount
)

// Check reads the cluster's limits. It leaves half of the cluster's jobs to other users.
func (e *Executor) Check(ctx context.Context) (executor.Capacity, error) {
	out, err := e.client.Run(ctx, nil, "scontrol", "show", "config")
	if err != nil {
		return executor.Capacity{}, fmt.Errorf("read the limits of Slurm: %w", err)
	}
	array, jobs := parseSetting(out, "MaxArraySize", defaultArray), parseSetting(out, "MaxJobCount", defaultJobs)
	if array < 2 {
		return executor.Capacity{}, advice.With(fmt.Errorf("no job arrays in Slurm: MaxArraySize is %d", array),
			"ask the cluster's administrator to raise it")
	}
	return executor.Capacity{Batch: min(array-1, max(1, jobs/2)), Total: max(1, jobs/2), Warning: ignoredOptions()}, nil
}

// parseSetting parses a number in the output of scontrol: "MaxArraySize = 1001".
func parseSetting(config []byte, name string, otherwise int) int {
	for line := range bytes.Lines(config) {
		key, value, ok := strings.Cut(string(line), "=")
		if n, err := strconv.Atoi(strings.TrimSpace(value)); ok && err == nil && strings.TrimSpace(key) == name {
			return n
		}
	}
	return otherwise
}

func (e *Executor) Submit(ctx context.Context, b executor.Batch) (executor.Submission, error) {
	var script bytes.Buffer
	if err := writeScript(&script, e, b); err != nil {
		return executor.Submission{}, err
	}
	path := b.Path(".sbatch")
	if err := os.WriteFile(path, script.Bytes(), 0o755); err != nil {
		return executor.Submission{}, fmt.Errorf("write job script: %w", err)
	}
	args, err := e.arguments(b)
	if err != nil {
		return executor.Submission{}, err
	}
	out, err := e.client.Run(ctx, nil, "sbatch", append(append([]string{"--parsable"}, args...), path)...)
	if err != nil {
		return executor.Submission{}, submitError(err)
	}
	// "1234" or "1234;cluster"
	ref, _, _ := strings.Cut(strings.TrimSpace(string(out)), ";")
	if _, err := strconv.Atoi(ref); err != nil {
		return executor.Submission{}, fmt.Errorf("sbatch printed %q instead of a job number", out)
	}
	return b.Submission(ref, len(b.Tasks)), nil
}

// submitError returns ErrFull for refusals that pass when jobs have ended.
func submitError(err error) error {
	for _, text := range []string{"Limit", "temporarily", "too many", "Too many", "Socket timed out", "Unable to contact"} {
		if strings.Contains(err.Error(), text) {
			return fmt.Errorf("%w: %w", executor.ErrFull, err)
		}
	}
	return advice.With(fmt.Errorf("submit job: %w", err),
		"pass the options that the cluster requires, such as --sbatch=--account=NAME")
}

func (e *Executor) Cancel(ctx context.Context, of []executor.Submission) error {
	if len(of) == 0 {
		return nil
	}
	args := []string{"--quiet"}
	for _, s := range of {
		args = append(args, s.Ref)
	}
	if _, err := e.client.Run(ctx, nil, "scancel", args...); err != nil {
		return fmt.Errorf("cancel jobs: %w", err)
	}
	return nil
}

func (e *Executor) Print(w io.Writer, b executor.Batch) (string, error) {
	return jobName(b), writeScript(w, e, b)
}

// Find returns the last job with the name, which replaces earlier ones.
func (e *Executor) Find(ctx context.Context, name string) (string, error) {
	out, err := e.client.Run(ctx, nil, "squeue", "--noheader", "--states=all", "--format=%F", "--name="+name)
	if err != nil {
		return "", fmt.Errorf("look up job %s: %w", name, err)
	}
	last := 0
	for _, word := range strings.Fields(string(out)) {
		if n, err := strconv.Atoi(word); err == nil {
			last = max(last, n)
		}
	}
	if last == 0 {
		return "", nil
	}
	return strconv.Itoa(last), nil
}

func (e *Executor) LastOutput(dir string, of executor.Submission, task int) string {
	element := of.Ref + "_" + strconv.Itoa(slices.Index(of.Tasks, task)+1)
	var text string
	if e.output {
		e.mu.Lock()
		defer e.mu.Unlock()
		if f := e.fetched[element]; f != nil {
			text = f.output
		}
	} else if read, err := os.ReadFile(filepath.Join(dir, executor.Folder, "slurm-"+element+".out")); err == nil {
		text = string(read)
	}
	return executor.LastLine(text)
}

// Close stops fetching; the cluster's jobs continue.
func (e *Executor) Close() error {
	e.stop()
	e.fetching.Wait()
	return nil
}

// droppedPrefixes are the prefixes of variables that Slurm's clients read as options, or that Slurm sets
// within a job. For sbatch they override the options of the script; squeue and scancel use them as filters
// (INPUT ENVIRONMENT VARIABLES in each manual).
var droppedPrefixes = []string{"SBATCH_", "SLURM_", "SLURMD_", "SQUEUE_", "SCANCEL_", "SCONTROL_", "SALLOC_", "SRUN_"}

// keptVariables select the cluster, and the user's account and queue. Options on the command line override
// the latter.
var keptVariables = []string{
	"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT", "SLURM_SACK_SOCKET",
	"SBATCH_ACCOUNT", "SBATCH_PARTITION", "SBATCH_QOS", "SBATCH_RESERVATION", "SBATCH_WCKEY",
}

// isDropped reports whether a variable belongs to an outer job or to the options of other jobs.
func isDropped(name string) bool {
	return slices.ContainsFunc(droppedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) &&
		!slices.Contains(keptVariables, name)
}

// ignoredOptions reports options for every sbatch in the user's environment that Skerry's jobs ignore; nil
// for none.
func ignoredOptions() error {
	var names []string
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "SBATCH_") && isDropped(name) {
			names = append(names, name)
		}
	}
	if names == nil {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("jobs ignore %s of the environment; pass the options with --sbatch", strings.Join(names, ", "))
}

// splitOption splits an option like sbatch splits a line of a script: at blanks outside of quotes.
func splitOption(option string) (list []string, err error) {
	var word strings.Builder
	quote, begun, escaped := rune(0), false, false
	for _, c := range option {
		switch {
		case escaped:
			word.WriteRune(c)
			escaped = false
		case c == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, begun = c, true
		case quote == 0 && (c == ' ' || c == '\t'):
			if begun {
				list = append(list, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("sbatch option %s: unterminated quote", option)
	}
	if begun {
		list = append(list, word.String())
	}
	return list, nil
}
