package sample

import (
	"os"
	"testing"
	"time"

	"skerry/internal/machine/files"
)

func TestParseMachine(t *testing.T) {
	const stat = "cpu  100 20 30 4000 500 6 7 80 0 0\ncpu0 50 10 15 2000 250 3 3 40 0 0\n"
	got, err := parseMachine(stat)
	if err != nil {
		t.Fatal(err)
	}
	want := Machine{Busy: 1630 * time.Millisecond, User: 1200 * time.Millisecond, System: 430 * time.Millisecond, Steal: 800 * time.Millisecond, Processes: 1500 * time.Millisecond, Cores: 1}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "cpu 1 2\n", "cpu a b c d e f g h\n"} {
		if _, err := parseMachine(bad); err == nil {
			t.Errorf("parseMachine(%q): no error", bad)
		}
	}
}

func TestParseProcessCPU(t *testing.T) {
	const stat = "42 (a ) b) S 1 42 42 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 1 0 100 1 1"
	got, err := parseProcessCPU(stat)
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * time.Second; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := parseProcessCPU("42 (x) S 1"); err == nil {
		t.Error("a short line gave no error")
	}
	if _, err := ProcessCPU(t.Context(), files.Local{}, os.Getpid()); err != nil {
		t.Error(err)
	}
}
