package bundle

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/record"
)

// A plan is exported, two trials are measured in its copy, and the results return once, even if the transport repeats,
// mixes or truncates lines.
func TestPlanAndResultsRoundTrip(t *testing.T) {
	source := t.TempDir()
	write(t, filepath.Join(source, "a", "x.yaml"), "name: x")
	write(t, filepath.Join(source, "m.csv"), "0,1")
	w, err := record.Create(t.TempDir(), record.Run{
		Name: "x", File: record.File{Path: filepath.Join(
			source, "a", "x.yaml",
		)}, Files: map[string]string{"../m.csv": "sum"}, Plan: []record.Planned{
			{ID: 1}, {ID: 2},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	packed, err := PackPlan(w.Dir(), w.Run(), []int{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	if err := Unpack(bytes.NewReader(packed), copied); err != nil {
		t.Fatal(err)
	}
	work, err := record.OpenWorker(copied)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(copied, filepath.Dir(work.Run().File.Path), "../m.csv")); err != nil || string(text) != "0,1" {
		t.Errorf("the experiment's file is %q in the copy (%v)", text, err)
	}
	for id, state := range map[int]string{1: record.TrialOK, 2: record.TrialFailed} {
		tw, err := work.OpenTrial(id)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(tw.Dir(), "logs", "node.log"), strings.Repeat("a long log\n", 10_000))
		if err := tw.Finish(record.Trial{State: state, Goodput: 7}); err != nil {
			t.Fatal(err)
		}
	}
	var sent bytes.Buffer
	if err := WriteResults(&sent, copied, []int{1, 2}); err != nil {
		t.Fatal(err)
	}

	receive := func(text string, want int, is error) string {
		t.Helper()
		output, err := ReadResults(strings.NewReader(text), w)
		if !errors.Is(err, is) {
			t.Fatalf("%v, want %v", err, is)
		}
		got, err := w.Collect()
		if err != nil || len(got) != want {
			t.Fatalf("%d trials came in (%v), want %d", len(got), err, want)
		}
		return output
	}
	lines := strings.SplitAfter(sent.String(), "\n")
	// Half of a result remains from a writer that was killed during the import.
	name := strings.TrimSpace(strings.TrimPrefix(lines[0], markBegin))
	write(t, filepath.Join(w.Dir(), "attempts", name+".partial", "trial.json"), "{")
	receive(strings.Join(lines[:len(lines)/4], ""), 0, ErrTruncated)                                    // cut within the first result
	receive(strings.Join(append(append([]string{}, lines[:1]...), lines[2:4]...), ""), 0, ErrTruncated) // a line is missing
	if output := receive("note: hello\n"+strings.Join(lines, "trial 2 continues\n"), 2, nil); !strings.Contains(output, "trial 2 continues") ||
		strings.Contains(output, "@skerry") {
		t.Errorf("the remaining output is %q", output)
	}
	receive(sent.String(), 0, nil)
	for _, x := range w.Summary().Trials {
		log, err := os.ReadFile(filepath.Join(w.Dir(), "trials", map[int]string{1: "1", 2: "2"}[x.ID], "logs", "node.log"))
		if err != nil || len(log) != 110_000 || x.Goodput != 7 {
			t.Errorf("trial %d was imported with %g ops/s and a log of %d bytes (%v)", x.ID, x.Goodput, len(log), err)
		}
	}
}

func TestUnpackRejectsNamesOutsideDirectory(t *testing.T) {
	w, err := record.Create(t.TempDir(), record.Run{Name: "x", Plan: []record.Planned{{ID: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, name := range []string{"1-0-../../x", "../1-0-x", "x", "1-0-x.partial"} {
		if err := w.Receive(name, func(string) error { return nil }); err == nil {
			t.Errorf("an attempt with the name %q was imported", name)
		}
	}
	if _, err := PackPlan(w.Dir(), record.Run{Files: map[string]string{"/etc/x": ""}}, nil); err == nil {
		t.Error("a file with an absolute path was packed")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
