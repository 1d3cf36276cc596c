package runner

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/base/progress"
	"skerry/internal/database/all"
	"skerry/internal/record"
)

// TestNotesAreRecorded: what of a workload's file has no effect stands in run.json from its start, and stays
// there when a trial adds what the machine could not give.
func TestNotesAreRecorded(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "w"), []byte("recordcount=5\nthreadcount=3\nflavour=2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "name: x\ntopology: mesh:3\ndatabase: redis\nworkload: {file: w}\n"
	var c Config
	if err := c.SetSource(record.File{Path: filepath.Join(dir, "x.yaml"), Text: text}, all.Databases()); err != nil {
		t.Fatal(err)
	}
	started, err := c.started()
	if err != nil {
		t.Fatal(err)
	}
	c.Progress = progress.New(io.Discard, nil)
	r := &run{Config: c}
	if r.writer, err = record.Create(dir, started); err != nil {
		t.Fatal(err)
	}
	for range 2 { // trials
		if err := r.observe("userspace", "", []string{"no real-time priority"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.writer.Finish(); err != nil {
		t.Fatal(err)
	}
	d, err := record.Open(r.writer.Dir())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"w:3: flavour=2 is not used: the name is unknown", "no real-time priority"}
	if diff := cmp.Diff(want, d.Run.Warnings); diff != "" || !slices.Contains(c.Experiment.Notes(c.Databases), want[0]) {
		t.Error(diff)
	}
}
