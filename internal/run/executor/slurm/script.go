package slurm

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/template"

	"skerry/internal/base/advice"
	"skerry/internal/machine/inventory"
	"skerry/internal/run/executor"
)

// script runs one line of the task file. exec delivers Slurm's signals to skerry, which then removes its
// lab. Jobs are exclusive because verdicts need quiet nodes. A job that starts twice still has one result.
var script = template.Must(template.New("sbatch").Funcs(template.FuncMap{"q": inventory.Quote}).Parse(`#!/bin/bash
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
			return fmt.Errorf("write job script: %q contains a line break", text)
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
		return fmt.Errorf("write job script: %w", err)
	}
	return nil
}

// batchOptions returns Skerry's own options of sbatch. Those of users follow and override them.
func (e *Executor) batchOptions(b executor.Batch) []string {
	output, cwd := b.Dir+"/"+executor.Folder+"/slurm-%A_%a.out", b.Cwd
	if e.output {
		output, cwd = "/dev/null", "/" // exist on every node
	}
	options := []string{
		"--job-name=" + jobName(b), fmt.Sprintf("--array=1-%d", len(b.Tasks)), "--output=" + output, "--open-mode=append", "--chdir=" + cwd,
		"--nodes=1", "--ntasks=1", "--exclusive", "--mem=" + formatMemory(b.MemoryBytes), "--requeue",
	}
	if m := int(math.Ceil(b.TimeLimit().Minutes())); m > 0 {
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

// arguments returns the script's options as command-line arguments, which the environment cannot override.
func (e *Executor) arguments(b executor.Batch) ([]string, error) {
	args := e.batchOptions(b)
	for _, o := range e.Options {
		given, err := splitOption(o)
		if err != nil {
			return nil, advice.With(err, "pass each option in its own flag, such as --sbatch=--account=lab")
		}
		args = append(args, given...)
	}
	return args, nil
}

func jobName(b executor.Batch) string {
	run := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, b.Run)
	return "skerry-" + run + strings.TrimPrefix(b.Name(), "skerry")
}

// formatDirective formats an option for an #SBATCH line, which is split at spaces and supports double
// quotes.
func formatDirective(option string) string {
	name, value, ok := strings.Cut(option, "=")
	if ok && strings.ContainsAny(value, " \t") {
		return name + `="` + value + `"`
	}
	return option
}

// formatMemory returns the job's memory: 1.5 times the lab's limit, or 0 for all memory of the machine.
func formatMemory(bytes int64) string {
	if bytes == 0 {
		return "0"
	}
	return fmt.Sprintf("%dM", int64(math.Ceil(float64(bytes)*1.5/(1<<20)))+1024)
}
