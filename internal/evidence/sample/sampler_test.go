package sample

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

type node struct {
	host.Host
	name  string
	usage host.Usage
	err   error
}

func (n *node) Name() string               { return n.name }
func (n *node) Usage() (host.Usage, error) { return n.usage, n.err }

func TestSampleReportsDifferences(t *testing.T) {
	n := &node{name: "Pune"}
	var sent uint64
	s := &Sampler{
		Hosts:    []host.Host{n},
		Machines: []Machine{{Files: files.Local{}, Emulator: os.Getpid()}},
		Traffic: func(context.Context) (Traffic, error) {
			return Traffic{Tx: map[string]uint64{"Pune": sent}}, nil
		},
	}
	if rows, err := s.Sample(t.Context(), 0); err != nil || rows != nil {
		t.Fatalf("first call: %v, %v", rows, err)
	}
	n.usage = host.Usage{CPU: time.Hour, Memory: 7, ReadBytes: 1100, WroteBytes: 1300}
	sent = 100_000
	s.since = s.since.Add(-10 * time.Second) // the second call is ten seconds late
	rows, err := s.Sample(t.Context(), 5)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 || rows[1].Node != EmulatorNode || rows[2].Node != HostNode {
		t.Fatalf("rows: %+v", rows)
	}
	got := rows[0]
	most := func(v, rate int64) bool { return v > 0 && v <= rate } // it may have been called even later
	if got.T != 5 || got.Node != "Pune" || !most(got.TxBytes, 10_000) || got.Memory != 7 || !most(got.ReadBytes, 110) ||
		!most(got.WroteBytes, 130) || got.CPU <= 0 {
		t.Errorf("got %+v", got)
	}
}

func TestSampleErrorNamesNode(t *testing.T) {
	gone := errors.New("gone")
	s := &Sampler{Hosts: []host.Host{&node{name: "Pune", err: gone}}}
	if _, err := s.Sample(t.Context(), 0); !errors.Is(err, gone) {
		t.Errorf("got %v, want %v", err, gone)
	}
}

// A sample is of a second of the measurement's clock, whenever the sampler was started.
func TestSecondsMatchMeasurement(t *testing.T) {
	for _, tt := range []struct {
		since, until time.Duration
		ended        int64
	}{
		{0, time.Second, -1},
		{900 * time.Millisecond, 100 * time.Millisecond, -1},
		{time.Second, time.Second, 0},
		{6*time.Second + time.Millisecond, 999 * time.Millisecond, 5},
		{6*time.Second + 900*time.Millisecond, 100 * time.Millisecond, 5},
	} {
		if got := untilNext(tt.since); got != tt.until {
			t.Errorf("at %v the second ends in %v, want %v", tt.since, got, tt.until)
		}
		if got := lastCompleted(tt.since); got != tt.ended {
			t.Errorf("at %v second %d has ended, want %d", tt.since, got, tt.ended)
		}
	}
}

func TestParseMachineUsage(t *testing.T) {
	const stat = "cpu  100 20 30 4000 500 6 7 80 0 0\ncpu0 50 10 15 2000 250 3 3 40 0 0\n"
	got, err := parseMachineUsage(stat)
	if err != nil {
		t.Fatal(err)
	}
	want := MachineUsage{Busy: 1630 * time.Millisecond, User: 1200 * time.Millisecond, System: 430 * time.Millisecond,
		Steal: 800 * time.Millisecond, Processes: 1500 * time.Millisecond, Cores: 1}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "cpu 1 2\n", "cpu a b c d e f g h\n"} {
		if _, err := parseMachineUsage(bad); err == nil {
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
		t.Error("a truncated line gave no error")
	}
	if _, err := ReadProcessCPU(t.Context(), files.Local{}, os.Getpid()); err != nil {
		t.Error(err)
	}
}
