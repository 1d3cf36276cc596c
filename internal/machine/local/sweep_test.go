package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"skerry/internal/kernel/procfs"
	"skerry/internal/machine/host"
	"skerry/internal/machine/journal"
	"skerry/test/testkit"
)

// lostLab creates a data directory of a lab whose state is missing.
func lostLab(t *testing.T, dataDir, id string) string {
	t.Helper()
	path := filepath.Join(dataDir, id)
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dataDir, "no", "lab"), filepath.Join(path, journal.Mark)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSweepLeavesDataUnderLiveProcesses(t *testing.T) {
	dir := t.TempDir()
	id := "lost-" + strconv.Itoa(os.Getpid())
	path := lostLab(t, dir, id)
	cmd := exec.Command("sleep", "1000")
	cmd.Env = []string{host.LabVariable + "=" + id}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	self, err := procfs.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	for self.Alive() && !hasTag(pid, id) { // the environment becomes readable shortly after Start
	}
	if swept := sweepData(dir); len(swept) > 0 {
		t.Errorf("swept %v while process %d was running", swept, pid)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // killed
	if swept := sweepData(dir); len(swept) != 1 || swept[0] != id {
		t.Errorf("swept %v, want %s", swept, id)
	}
}

// In a directory like /tmp, another user may have created the path first.
func TestSweepKeepsForeignDataDirectories(t *testing.T) {
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
		t.Errorf("swept %v of another user", swept)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
