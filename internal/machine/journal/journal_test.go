package journal

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/kernel/procfs"
)

// Later versions of the program read journals on disks, so the format of a line must not change.
func TestJournalFormatIsStable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	plan := Plan{ID: "a-1", Boot: "b", Owner: procfs.Process{PID: 1, Start: 2}, Data: "/data/a-1", MadeNames: true}
	j, err := Create(path, plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.AppendProcess(procfs.Process{PID: 3, Start: 4}, "redis"); err != nil {
		t.Error(err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if err := j.AppendProcess(procfs.Process{PID: 5}, "late"); err == nil {
		t.Error("a closed journal accepted a process")
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `
{"plan":{"id":"a-1","boot":"b","owner":{"pid":1,"start":2},"data":"/data/a-1","made_names":true}}

{"process":{"pid":3,"start":4,"name":"redis"}}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

// A crash may truncate a journal anywhere: complete lines still count.
func TestTruncatedJournalKeepsCompleteLines(t *testing.T) {
	first := []byte("\n{\"plan\":{\"id\":\"a-1\"}}\n")
	text := append(bytes.Clone(first), "\n{\"process\":{\"pid\":3,\"start\":4,\"name\":\"x\"}}\n"...)
	for n := range len(text) + 1 {
		plan, processes := Parse(text[:n])
		if known := n >= len(first)-1; known != (plan != nil && plan.ID == "a-1") {
			t.Errorf("journal of %d bytes: plan %+v", n, plan)
		}
		if whole := n >= len(text)-1; whole != (len(processes) == 1) {
			t.Errorf("journal of %d bytes: %d processes", n, len(processes))
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("{\"plan\":{\"id\":\"a-1\"}}\n\n{\"process\":{\"pid\":1,\"start\":2,\"name\":\"x\"}}\n{\"proc"))
	f.Fuzz(func(t *testing.T, data []byte) {
		Parse(data)
	})
}
