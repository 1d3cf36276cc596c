package main

import (
	"os"
	"strings"
	"testing"

	"skerry/cmd/internal/cli"
	"skerry/internal/record"
)

// finishedRun makes a run of one trial below a working directory of the test's own.
func finishedRun(t *testing.T) string {
	t.Helper()
	t.Chdir(t.TempDir())
	w, err := record.Create("runs", record.Run{Name: "tiny", Plan: []record.Planned{
		{ID: 1, Cell: 1, Repetition: 1, Parameters: map[string]any{"database": "redis", "workload": "a", "scale": 1.0}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	trial, err := w.OpenTrial(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := trial.Finish(record.Trial{State: record.TrialOK, Goodput: 1234, Throughput: 1234, Verdict: record.Verdict{State: record.Valid}}); err != nil {
		t.Fatal(err)
	}
	return w.Dir()
}

func TestShowReadsTheLatestRun(t *testing.T) {
	dir := finishedRun(t)
	for _, c := range []struct{ args, want string }{
		{"show", "1,234"},
		{"show " + dir, "1,234"},
		{"show --trials", "trial  workload"},
		{"show --json", `"goodput_ops_s": 1234`},
	} {
		code, out, errs := skerry(t, strings.Fields(c.args)...)
		if code != cli.ExitOK || !strings.Contains(out, c.want) {
			t.Errorf("skerry %s: exit %d, %s, want %q in\n%s", c.args, code, errs, c.want, out)
		}
	}
}

func TestShowTellsWhatIsNoRun(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("run.json", []byte(`{"schema":"skerry/run/v99"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("foreign", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args         string
		code         int
		want, advice string
	}{
		{"show", cli.ExitUsage, "runs/latest", "skerry run makes one"},
		{"report foreign", cli.ExitUsage, "not a run directory", "runs/latest"},
		{"show .", cli.ExitError, "written by a newer skerry", "the skerry that wrote it"},
		{"show run.json", cli.ExitUsage, "not a run directory", "directory"},
	} {
		code, _, errs := skerry(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(errs, c.want) || !strings.Contains(errs, c.advice) {
			t.Errorf("skerry %s: exit %d, want %d, and %q and %q in\n%s", c.args, code, c.code, c.want, c.advice, errs)
		}
	}
}
