package journal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry/internal/base/advice"
	"skerry/test/testkit"
)

func record(t *testing.T, dir, text string) *PendingUndo {
	t.Helper()
	p, err := RecordUndo(t.Context(), UndosDir(dir), Undo{Of: "break it", Text: text, Dir: t.TempDir(), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSweepRunsUndosOfDeadProcesses(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := record(t, data, "echo once >>undone")
	if undone, err := SweepUndos(t.Context(), UndosDir(data)); len(undone) > 0 || err != nil {
		t.Errorf("while its process is running: %q, %v", undone, err)
	}
	if err := p.Leave(); err != nil { // as the kernel does at the end of a process
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		if undone, err := SweepUndos(t.Context(), UndosDir(data)); len(undone) != want || err != nil {
			t.Errorf("undone: %q, %v", undone, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(p.Dir, "undone")); err != nil || string(text) != "once\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(data); err == nil {
		t.Errorf("%s was left", data)
	}
}

func TestSweepKeepsFailedUndos(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := record(t, data, "test -e fixed || { echo no route; exit 3; }")
	if err := p.Leave(); err != nil {
		t.Fatal(err)
	}
	undone, err := SweepUndos(t.Context(), UndosDir(data))
	if len(undone) > 0 || err == nil || !strings.Contains(err.Error(), "exit status 3: no route") ||
		!strings.Contains(advice.Of(err), p.dir.Path) {
		t.Errorf("%q, %v, %s", undone, err, advice.Of(err))
	}
	if err := os.WriteFile(filepath.Join(p.Dir, "fixed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if undone, err := SweepUndos(t.Context(), UndosDir(data)); len(undone) != 1 || err != nil {
		t.Errorf("%q, %v", undone, err)
	}
}

// Without a record, no command has begun. Records in a directory of another user are not read.
func TestSweepOfForeignFiles(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	c, err := NewLockedDir(t.Context(), UndosDir(data), "half")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Leave(); err != nil {
		t.Fatal(err)
	}
	if undone, err := SweepUndos(t.Context(), UndosDir(data)); len(undone) != 0 || err != nil {
		t.Errorf("%q, %v", undone, err)
	}
	if _, err := os.Stat(data); err == nil {
		t.Errorf("%s was left", data)
	}
	testkit.Need(t, testkit.Root)
	p := record(t, data, "touch ran")
	if err := p.Leave(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(UndosDir(data), 54321, 54321); err != nil {
		t.Fatal(err)
	}
	if _, err := SweepUndos(t.Context(), UndosDir(data)); err == nil || !strings.Contains(err.Error(), "belongs to user 54321") {
		t.Errorf("the command of another user: %v", err)
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "ran")); err == nil {
		t.Error("the command ran")
	}
}
