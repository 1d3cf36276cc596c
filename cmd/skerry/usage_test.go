package main

import (
	"skerry/cmd/internal/cli"

	"slices"
	"strings"
	"testing"
)

func TestUsageErrorsExitWithTwo(t *testing.T) {
	for _, line := range []string{"frobnicate", "show a b c", "compare", "lab down x y", "serve a b", "bench nosuch", "doctor x", "lab exec",
		"schema nosuch", "run --nope", "install nosuch", "completion nosuch", "choose /nosuch", "validate", "fire",
		"run x.yaml --only 3", "run x.yaml --suspect", "run x.yaml --sbatch=--a", "run --follow r x.yaml", "run --resume r --set a=1",
		"run --resume r --only 3 --ui", "choose x.yaml --image i"} {
		if code, out, errs := skerry(t, strings.Fields(line)...); code != cli.ExitUsage || !strings.Contains(errs, "usage") {
			t.Errorf("skerry %s: exit code %d, %s%s", line, code, out, errs)
		}
	}
	for _, line := range []string{"show /nosuch", "report /nosuch", "compare /nosuch"} {
		if code, out, errs := skerry(t, strings.Fields(line)...); code != cli.ExitUsage || !strings.Contains(errs, "runs are in runs/") {
			t.Errorf("skerry %s: exit code %d, %s%s", line, code, out, errs)
		}
	}
	if _, _, errs := skerry(t, "lab", "stauts"); !strings.Contains(errs, "did you mean status?") {
		t.Error(errs)
	}
	if _, _, errs := skerry(t, "compare"); !strings.Contains(errs, "missing arguments: skerry compare RUN[:CELL] [RUN[:CELL]]") {
		t.Error(errs)
	}
	if code, out, _ := skerry(t, "lab"); code != cli.ExitOK || !strings.Contains(out, "status") {
		t.Errorf("a parent command lists its subcommands: %d %s", code, out)
	}
}

// Commands that moved to another program name it.
func TestMovedCommandsNameTheirProgram(t *testing.T) {
	for line, want := range map[string]string{"hydra node --config x": "hydra", "metadata": "metad"} {
		if code, _, errs := skerry(t, strings.Fields(line)...); code != cli.ExitError || !strings.Contains(errs, "is now the program "+want) {
			t.Errorf("skerry %s: exit code %d, %s", line, code, errs)
		}
	}
}

func TestShellCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"install red": "redis", "run --set workload.th": "workload.threads=", "run --set database=": "database=redis",
		"validate --set matr": "matrix=", "run --from ": "redis=",
	} {
		words := strings.SplitN(line, " ", -1)
		_, out, errs := skerry(t, append([]string{"__complete"}, words...)...)
		if !slices.Contains(strings.Split(out, "\n"), want) {
			t.Errorf("%s: no %s among %.300s %s", line, want, out, errs)
		}
	}
}
