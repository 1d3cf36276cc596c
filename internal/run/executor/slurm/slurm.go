// Package slurm has tasks done by a Slurm cluster, through the clients that its users have: a batch
// is a job array, a task one element of it on a node of its own.
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
	// Partition is where jobs go, "" for the cluster's own choice.
	Partition string
	// Options are passed on to sbatch ("--account=lab").
	Options []string

	home   executor.RunDirectory
	output bool // results come by what jobs print; else nodes see the run directory
	client executor.Client

	ctx      context.Context // of what is fetched; Close ends it
	stop     context.CancelFunc
	fetching sync.WaitGroup

	checked map[string]bool // failed tasks that were asked for why
	mu      sync.Mutex
	fetched map[string]*fetchedTask // by element of an array, "JOB_INDEX"
}

// New returns the cluster that this machine's sbatch speaks to. Results are the way that results take: "" or "shared" for
// a run directory that nodes see, "output" for what jobs print.
func New(partition string, options []string, results string, home executor.RunDirectory) (*Executor, error) {
	if results != "" && results != "shared" && results != "output" {
		return nil, advice.With(fmt.Errorf("results do not come from Slurm by %q", results), "there are: shared, output")
	}
	e := &Executor{Partition: partition, Options: options, home: home, output: results == "output", checked: map[string]bool{}, fetched: map[string]*fetchedTask{},
		// Without it squeue cuts the ranges of waiting tasks at 64 characters.
		client: executor.Client{
			Env: []string{"SLURM_BITSTR_LEN=0"}, Drop: isDropped,
			Advice: "run this where sbatch is, such as the cluster's login node; or print the script there: --dry-run",
		}}
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e, nil
}

// Limits where a cluster does not tell its own: Slurm's defaults.
const (
	defaultArray = 1001  // MaxArraySize: indexes are below it
	defaultJobs  = 10000 // MaxJobCount
)

// Check asks the cluster for its limits. Half of the jobs that it holds at most are left to others.
func (e *Executor) Check(ctx context.Context) (executor.Limits, error) {
	out, err := e.client.Run(ctx, nil, "scontrol", "show", "config")
	if err != nil {
		return executor.Limits{}, fmt.Errorf("asking Slurm for its limits: %w", err)
	}
	array, jobs := parseSetting(out, "MaxArraySize", defaultArray), parseSetting(out, "MaxJobCount", defaultJobs)
	if array < 2 {
		return executor.Limits{}, advice.With(
			fmt.Errorf("this Slurm has no job arrays: MaxArraySize is %d", array),
			"ask who runs the cluster to raise it",
		)
	}
	return executor.Limits{Batch: min(array-1, max(1, jobs/2)), Total: max(1, jobs/2), Warning: ignoredOptions()}, nil
}

// parseSetting reads a number of what scontrol shows: "MaxArraySize            = 1001".
func parseSetting(config []byte, name string, otherwise int) int {
	for line := range bytes.Lines(config) {
		key, value, ok := strings.Cut(string(line), "=")
		if n, err := strconv.Atoi(strings.TrimSpace(value)); ok && err == nil && strings.TrimSpace(key) == name {
			return n
		}
	}
	return otherwise
}

// Submit hands a batch over as an array of jobs.
func (e *Executor) Submit(ctx context.Context, b executor.Batch) (executor.Submission, error) {
	var script bytes.Buffer
	if err := writeScript(&script, e, b); err != nil {
		return executor.Submission{}, err
	}
	path := b.Path(".sbatch")
	if err := os.WriteFile(path, script.Bytes(), 0o755); err != nil {
		return executor.Submission{}, fmt.Errorf("writing the job's script: %w", err)
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
		return executor.Submission{}, fmt.Errorf("sbatch printed %q in place of a job's number", out)
	}
	return b.Submission(ref, len(b.Tasks)), nil
}

// submitError tells a refusal that passes when jobs have ended from one that stays.
func submitError(err error) error {
	for _, text := range []string{"Limit", "temporarily", "too many", "Too many", "Socket timed out", "Unable to contact"} {
		if strings.Contains(err.Error(), text) {
			return fmt.Errorf("%w: %w", executor.ErrFull, err)
		}
	}
	return advice.With(
		fmt.Errorf("submitting the job: %w", err),
		"give what the cluster asks for with --sbatch, such as --sbatch=--account=NAME",
	)
}

// Cancel ends all jobs of the submissions.
func (e *Executor) Cancel(ctx context.Context, of []executor.Submission) error {
	if len(of) == 0 {
		return nil
	}
	args := []string{"--quiet"}
	for _, s := range of {
		args = append(args, s.Ref)
	}
	if _, err := e.client.Run(ctx, nil, "scancel", args...); err != nil {
		return fmt.Errorf("cancelling jobs: %w", err)
	}
	return nil
}

// Print writes the script of a batch; it is found by the job's name.
func (e *Executor) Print(w io.Writer, b executor.Batch) (string, error) {
	return jobName(b), writeScript(w, e, b)
}

// Find looks for a job of that name; of several the last one counts, which was submitted in place of the others.
func (e *Executor) Find(ctx context.Context, name string) (string, error) {
	out, err := e.client.Run(ctx, nil, "squeue", "--noheader", "--states=all", "--format=%F", "--name="+name)
	if err != nil {
		return "", fmt.Errorf("asking for the job %s: %w", name, err)
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

// LastOutput is the last line of a task's output.
func (e *Executor) LastOutput(dir string, of executor.Submission, task int) string {
	element := of.Ref + "_" + strconv.Itoa(slices.Index(of.Tasks, task)+1)
	var text string
	if e.output {
		e.mu.Lock()
		defer e.mu.Unlock()
		if f := e.fetched[element]; f != nil {
			text = f.said
		}
	} else if read, err := os.ReadFile(filepath.Join(dir, executor.Folder, "slurm-"+element+".out")); err == nil {
		text = string(read)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// Close ends what is being fetched, and waits for it: the cluster goes on by itself.
func (e *Executor) Close() error {
	e.stop()
	e.fetching.Wait()
	return nil
}

// droppedPrefixes are those of variables that Slurm's clients read as options, or that Slurm sets within a job. For sbatch they win
// over the options of the script; squeue and scancel look at fewer jobs by them (INPUT ENVIRONMENT VARIABLES in the manual
// of each client).
var droppedPrefixes = []string{"SBATCH_", "SLURM_", "SLURMD_", "SQUEUE_", "SCANCEL_", "SCONTROL_", "SALLOC_", "SRUN_"}

// keptVariables are those that lead the clients to the cluster, and a user's choice of who pays and where jobs go. Options of the
// command line win over the latter.
var keptVariables = []string{
	"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT", "SLURM_SACK_SOCKET",
	"SBATCH_ACCOUNT", "SBATCH_PARTITION", "SBATCH_QOS", "SBATCH_RESERVATION", "SBATCH_WCKEY",
}

// isDropped tells whether the clients run without a variable: what an outer job left, or options of other jobs.
func isDropped(name string) bool {
	return slices.ContainsFunc(droppedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) &&
		!slices.Contains(keptVariables, name)
}

// ignoredOptions reports options that a user set for every sbatch and that jobs of Skerry do not have; nil without any.
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
	return fmt.Errorf("jobs are submitted without %s of the environment; give what they need with --sbatch", strings.Join(names, ", "))
}

// splitOption splits an option as sbatch splits a line of a script: at blanks, outside of quotes.
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
		return nil, fmt.Errorf("the option %s of sbatch has a quote without its end", option)
	}
	if begun {
		list = append(list, word.String())
	}
	return list, nil
}
