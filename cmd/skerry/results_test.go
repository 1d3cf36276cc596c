package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/record"
	"skerry/web"
)

// withPage runs a command of a binary with the page of reports that page returns.
func withPage(t *testing.T, page func() ([]byte, error), args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	root := newRoot(&app{App: cli.New(nil, &out, &errs), reportPage: page})
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func builtPage() ([]byte, error) {
	return []byte("<!DOCTYPE html><head><title>Skerry report</title></head><body><!--skerry:data--></body>"), nil
}

func notBuilt() ([]byte, error) { return nil, advice.With(web.ErrNotBuilt, "run make") }

func TestReport(t *testing.T) {
	dir := finishedRun(t)
	for args, want := range map[string]string{"report": filepath.Join(dir, "report.html"), "report --out other.html": "other.html"} {
		out, _, err := withPage(t, builtPage, strings.Fields(args)...)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("skerry %s: %v, want %q in\n%s", args, err, want, out)
		}
		if b, err := os.ReadFile(want); err != nil || !bytes.HasPrefix(b, []byte("<!DOCTYPE html>")) {
			t.Errorf("%s: %v, begins with %.20q", want, err, b)
		}
	}
}

// A binary without the front end writes no report and reports the reason; a run's table is printed, and its figures can
// be exported.
func TestReportWithoutFrontEnd(t *testing.T) {
	dir := finishedRun(t)
	for _, args := range []string{"report", "report --out other.html"} {
		_, _, err := withPage(t, notBuilt, strings.Fields(args)...)
		if !errors.Is(err, web.ErrNotBuilt) || !strings.HasPrefix(err.Error(), "write report of "+dir) || advice.Of(err) == "" {
			t.Errorf("skerry %s: %v, advice %q", args, err, advice.Of(err))
		}
	}
	for _, name := range []string{filepath.Join(dir, "report.html"), "other.html"} {
		if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was written: %v", name, err)
		}
	}
	if out, _, err := withPage(t, notBuilt, "report", "--dstat", "nodes"); err != nil || !strings.Contains(out, "nodes") {
		t.Errorf("exporting: %v\n%s", err, out)
	}
	var out, errs bytes.Buffer
	if err := (&app{App: cli.New(nil, &out, &errs), reportPage: notBuilt}).present(dir); err != nil ||
		!strings.Contains(out.String(), "1,234") ||
		!strings.Contains(errs.String(), web.ErrNotBuilt.Error()) || !strings.Contains(errs.String(), "run make") {
		t.Errorf("after a run: %v\n%s%s", err, out.String(), errs.String())
	}
}

// finishedRun creates a run of one trial in a working directory of the test.
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
	if err := trial.Finish(record.Trial{State: record.TrialOK, Goodput: 1234, Throughput: 1234,
		Verdict: record.Verdict{State: record.Valid}}); err != nil {
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

func TestShowRejectsFoldersWithoutRun(t *testing.T) {
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
		{"show", cli.ExitUsage, "runs/latest", "create one with `skerry run`"},
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
