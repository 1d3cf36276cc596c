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

func TestTakeReportsDifferences(t *testing.T) {
	n := &node{name: "Pune"}
	var sent uint64
	s := &Sampler{
		Hosts:    []host.Host{n},
		Machines: []Machinery{{Files: files.Local{}, Emulator: os.Getpid()}},
		Traffic: func(context.Context) (Traffic, error) {
			return Traffic{Tx: map[string]uint64{"Pune": sent}}, nil
		},
	}
	if rows, err := s.Take(t.Context(), 0); err != nil || rows != nil {
		t.Fatalf("first call: %v, %v", rows, err)
	}
	n.usage = host.Usage{CPU: time.Hour, Memory: 7, ReadBytes: 1100, WroteBytes: 1300}
	sent = 100_000
	s.since = s.since.Add(-10 * time.Second) // the second came ten late
	rows, err := s.Take(t.Context(), 5)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 || rows[1].Node != EmulatorNode || rows[2].Node != HostNode {
		t.Fatalf("rows: %+v", rows)
	}
	got := rows[0]
	most := func(v, rate int64) bool { return v > 0 && v <= rate } // it may have come later still
	if got.T != 5 || got.Node != "Pune" || !most(got.TxBytes, 10_000) || got.Memory != 7 || !most(got.ReadBytes, 110) || !most(got.WroteBytes, 130) || got.CPU <= 0 {
		t.Errorf("got %+v", got)
	}
}

func TestTakeNamesTheNodeThatFails(t *testing.T) {
	gone := errors.New("gone")
	s := &Sampler{Hosts: []host.Host{&node{name: "Pune", err: gone}}}
	if _, err := s.Take(t.Context(), 0); !errors.Is(err, gone) {
		t.Errorf("got %v, want %v", err, gone)
	}
}

// A sample is of a second of the measurement's clock, whenever the sampler was started.
func TestSecondsAreThoseOfTheMeasurement(t *testing.T) {
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
		if got := ended(tt.since); got != tt.ended {
			t.Errorf("at %v second %d has ended, want %d", tt.since, got, tt.ended)
		}
	}
}
