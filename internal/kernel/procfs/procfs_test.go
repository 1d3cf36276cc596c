package procfs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseStat(t *testing.T) {
	line := "42 (a (b) c) S 1 42 42 0 -1 4194560 1 2 0 0 100 50 7 3 20 0 6 0 12345 1000 2 18446744073709551615\n"
	want := Stat{Name: "a (b) c", State: 'S', Threads: 6, CPU: 1600 * time.Millisecond, Start: 12345, Resident: int64(2 * os.Getpagesize())}
	got, err := parseStat([]byte(line))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestProcessRunsWhileAnyThreadDoes(t *testing.T) {
	for _, tt := range []struct {
		state   byte
		threads int
		want    bool
	}{{'S', 1, true}, {'R', 4, true}, {'Z', 4, true}, {'Z', 1, false}, {'Z', 0, false}, {'X', 1, false}} {
		if got := (Stat{State: tt.state, Threads: tt.threads}).running(); got != tt.want {
			t.Errorf("state %c, %d threads: runs %v, want %v", tt.state, tt.threads, got, tt.want)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) S 1 42 42 0 -1 4194560 1 2 0 0 100 50 7 3 20 0 1 0 12345 1000 2"))
	f.Add([]byte(") ("))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = parseStat(data)
	})
}

func TestProcessIsTheOneThatStartedThen(t *testing.T) {
	self, err := Self()
	if err != nil || !self.Alive() {
		t.Fatalf("Self() = %v, %v; want a living process", self, err)
	}
	other := self
	other.Start--
	if other.Alive() {
		t.Error("a process that had this ID earlier counts as alive")
	}
	if err := other.Kill(); err != nil {
		t.Errorf("killing an ended process: %v", err)
	}
}

func TestKill(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	cmd.Env = []string{"SKERRY_PROCFS_TEST=it is this one"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := FindProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	// The environment becomes readable shortly after Start returns.
	got := ""
	for got == "" && p.Alive() {
		got = ReadEnv(p.PID, "SKERRY_PROCFS_TEST")
	}
	if got != "it is this one" {
		t.Errorf("environment has %q", got)
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("exit status 0, want killed")
	}
	if p.Alive() {
		t.Error("alive after Kill")
	}
}

func TestAvailableMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "meminfo")
	for text, want := range map[string]int64{"MemTotal: 9 kB\nMemAvailable:  2048 kB\n": 2 << 20, "MemTotal: 9 kB\n": -1} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := availableMemory(path); want >= 0 && (got != want || err != nil) || want < 0 && err == nil {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}
