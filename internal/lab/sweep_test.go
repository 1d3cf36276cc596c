package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/host"
	"skerry/internal/procfs"
	"skerry/internal/testkit"
)

// lostLab makes a directory of data whose lab's state is gone.
func lostLab(t *testing.T, dataDir, id string) string {
	t.Helper()
	path := filepath.Join(dataDir, id)
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dataDir, "no", "lab"), filepath.Join(path, madeFile)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSweepLeavesDataUnderLiveProcesses(t *testing.T) {
	dir := t.TempDir()
	id := "lost-" + itoa(os.Getpid())
	path := lostLab(t, dir, id)
	cmd := exec.Command("sleep", "1000")
	cmd.Env = []string{host.LabVariable + "=" + id}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	self, err := procfs.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	for self.Alive() && !bearsTag(pid, id) { // the kernel lays its environment out after Start
	}
	if swept := sweepData(dir); len(swept) > 0 {
		t.Errorf("swept %v under process %d", swept, pid)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	if swept := sweepData(dir); len(swept) != 1 || swept[0] != id {
		t.Errorf("swept %v, want %s", swept, id)
	}
}

// TestDirectoriesOfStrangers: in a directory like /tmp anyone may be there first.
func TestDirectoriesOfStrangers(t *testing.T) {
	testkit.Need(t, testkit.Root)
	above := t.TempDir()
	if err := os.Chmod(above, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	const stranger = 54321
	dir := filepath.Join(above, "skerry")
	path := lostLab(t, dir, "lost-1")
	if err := os.Chown(dir, stranger, stranger); err != nil {
		t.Fatal(err)
	}
	if swept := sweepData(dir); len(swept) > 0 {
		t.Errorf("swept %v of a stranger", swept)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	if err := own(dir); err == nil {
		t.Error("took the directory of a stranger")
	}
	other := filepath.Join(above, "other")
	if err := os.Mkdir(other+newSuffix, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(other+newSuffix, stranger, stranger); err != nil {
		t.Fatal(err)
	}
	if err := own(other); err == nil {
		t.Error("took what a stranger put where the directory is made")
	}
}

func TestSweepLeavesWhatItCannotRead(t *testing.T) {
	c := config(t, "unread")
	c.Ephemeral = false
	l, err := Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.place.file(stateFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if swept, err := Sweep(t.Context(), c.StateDir); err == nil || !strings.Contains(err.Error(), c.Name) || len(swept) > 0 {
		t.Errorf("swept %v, %v; want an error that names %s", swept, err, c.Name)
	}
	if _, err := Up(t.Context(), c); err == nil {
		t.Error("brought up over a lab that may be up")
	}
	if !mounted(l.place.namespaces()) {
		t.Error("the lab was cleared")
	}
	if err := Remove(t.Context(), c.StateDir, c.Name); err != nil {
		t.Error(err)
	}
	noTraces(t, c)
}
