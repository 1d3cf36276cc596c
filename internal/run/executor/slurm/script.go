package slurm

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/template"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/run/executor"
)

// slack is by how much a job may take longer than what is expected before Slurm ends it: other
// machines are slower, and the first trial on a node fetches what is cached later.
const (
	slackFactor = 3
	slackTime   = 10 * time.Minute
)

// script runs one line of the task file. exec lets Slurm's signals reach skerry, which takes its
// lab down. The node must be the trial's alone, since verdicts want quiet; a job that was begun
// twice has its result once.
var script = template.Must(template.New("sbatch").Funcs(template.FuncMap{"q": quoteShell}).Parse(`#!/bin/bash
{{- range .Options}}
#SBATCH {{.}}{{end}}
export {{.Variable}}="slurm $SLURM_JOB_ID on $(hostname)"
{{if .Plan}}{{template "output" .}}{{else}}{{template "shared" .}}{{end}}
{{- define "shared"}}if [ "$(cat {{q .TokenFile}} 2>/dev/null)" != {{.Token}} ]; then
	echo "skerry: $(hostname) does not see the run directory "{{q .Dir}} >&2
	exit {{.NotShared}}
fi
exec {{q .Exe}}{{if .StateDir}} --state-dir {{q .StateDir}}{{end}} run --resume {{q .Dir}}{{if .Again}} --suspect{{end}} --only "@"{{q .File}}":$SLURM_ARRAY_TASK_ID"
{{end}}
{{- define "output"}}# By the job's number alone all jobs of an array would be told, where it is that of the array.
told() { scontrol update JobId="${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" Comment="$1"; }
full() { told "{{.Trouble}}$(hostname) has no room for the task in ${TMPDIR:-/tmp}"; exit 1; }
told "{{.Measuring}}"
work=$(mktemp -d -t skerry.XXXXXX) || full
trap 'rm -rf "$work"' EXIT
trap 'ended=1; kill -TERM "$task"' TERM
only=$(sed -n "${SLURM_ARRAY_TASK_ID}p" <<'TASKS'
{{range .Tasks}}{{range $i, $id := .Trials}}{{if $i}},{{end}}{{$id}}{{end}}
{{end}}TASKS
)
base64 --decode >"$work/plan" <<'PLAN' || full
{{.Plan}}
PLAN
{{q .Exe}}{{if .StateDir}} --state-dir {{q .StateDir}}{{end}} agent task --plan "$work/plan"{{if .Again}} --suspect{{end}} --only "$only" >"$work/out" 2>&1 &
task=$!
wait "$task"
code=$?
while kill -0 "$task" 2>/dev/null; do wait "$task"; done # a signal ends a wait, and not the task
[ -z "$ended" ] || exit $code
# What was printed waits for the run's controller, which removes it when it has it.
told "{{.Ready}}$work/out" || exit $code
for ((i = 0; i < {{.Hold}}; i++)); do
	[ -e "$work/out" ] || exit $code
	sleep 1
done
exit $code
{{end}}`))

func writeScript(w io.Writer, e *Executor, b executor.Batch) error {
	for _, text := range []string{b.Dir, b.Cwd, e.Partition, strings.Join(e.Options, "")} {
		if strings.ContainsAny(text, "\n\r") {
			return fmt.Errorf("writing the job's script: %q has a line break", text)
		}
	}
	var options []string
	for _, o := range e.batchOptions(b) {
		options = append(options, formatDirective(o))
	}
	plan := ""
	if e.output {
		var err error
		if plan, err = e.encodePlan(b); err != nil {
			return err
		}
	}
	err := script.Execute(w, map[string]any{
		"Tasks": b.Tasks, "Options": append(options, e.Options...),
		"TokenFile": b.Dir + "/" + executor.TokenFile, "Token": b.Token, "NotShared": executor.ExitNotShared, "Variable": executor.TaskVariable,
		"Exe": b.Exe, "StateDir": b.StateDir, "Dir": b.Dir, "Again": b.Rerun, "File": b.File,
		"Plan": plan, "Ready": ready, "Measuring": measuring, "Trouble": trouble, "Hold": int(holdTimeout.Seconds()),
	})
	if err != nil {
		return fmt.Errorf("writing the job's script: %w", err)
	}
	return nil
}

// batchOptions are Skerry's own for sbatch, each a word of a command line. Those of users follow them, and win.
func (e *Executor) batchOptions(b executor.Batch) []string {
	output, cwd := b.Dir+"/"+executor.Folder+"/slurm-%A_%a.out", b.Cwd
	if e.output {
		output, cwd = "/dev/null", "/" // those that every node has
	}
	options := []string{
		"--job-name=" + jobName(b), fmt.Sprintf("--array=1-%d", len(b.Tasks)), "--output=" + output, "--open-mode=append", "--chdir=" + cwd,
		"--nodes=1", "--ntasks=1", "--exclusive", "--mem=" + formatMemory(b.MemoryBytes), "--requeue",
	}
	if m := timeLimit(b.ExpectedTime); m > 0 {
		options = append(options, fmt.Sprintf("--time=%d", m))
	}
	if len(b.Exclude) > 0 {
		options = append(options, "--exclude="+strings.Join(b.Exclude, ","))
	}
	if e.Partition != "" {
		options = append(options, "--partition="+e.Partition)
	}
	return options
}

// arguments are the script's options on the command line of sbatch, where no variable of the environment wins over them.
func (e *Executor) arguments(b executor.Batch) ([]string, error) {
	args := e.batchOptions(b)
	for _, o := range e.Options {
		given, err := splitOption(o)
		if err != nil {
			return nil, advice.With(err, "give each option by a --sbatch of its own, such as --sbatch=--account=lab")
		}
		args = append(args, given...)
	}
	return args, nil
}

// jobName is a job's: squeue shows the experiment, and no other batch has it.
func jobName(b executor.Batch) string {
	run := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, b.Run)
	return "skerry-" + run + strings.TrimPrefix(b.Name(), "skerry")
}

// quoteShell is a word of the shell.
func quoteShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// formatDirective is an option on a line of #SBATCH, which is cut at spaces and knows double quotes.
func formatDirective(option string) string {
	name, value, ok := strings.Cut(option, "=")
	if ok && strings.ContainsAny(value, " \t") {
		return name + `="` + value + `"`
	}
	return option
}

// formatMemory is what a job asks for: what its lab may use and a half more, or where its nodes have no limit all
// that a machine has, which is the meaning of 0.
func formatMemory(bytes int64) string {
	if bytes == 0 {
		return "0"
	}
	return fmt.Sprintf("%dM", int64(math.Ceil(float64(bytes)*1.5/(1<<20)))+1024)
}

// timeLimit is a job's limit, 0 for the partition's.
func timeLimit(takes time.Duration) int {
	if takes == 0 {
		return 0
	}
	return int(math.Ceil((slackFactor*takes + slackTime).Minutes()))
}
