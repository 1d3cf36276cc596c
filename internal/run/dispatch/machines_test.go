package dispatch

import (
	"strings"
	"testing"
	"time"

	"skerry/internal/record"
)

func TestClockOffset(t *testing.T) {
	handed := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	seen := handed.Add(time.Minute)
	for name, tt := range map[string]struct {
		started time.Time
		want    time.Duration
	}{
		"within":                     {handed.Add(5 * time.Second), 0},
		"slightly behind":            {handed.Add(-time.Second), 0},
		"an hour behind":             {handed.Add(10*time.Second - time.Hour), 10*time.Second - time.Hour},
		"ahead by ten minutes":       {handed.Add(10 * time.Minute), 9*time.Minute + 20*time.Second},
		"ended when first seen":      {handed.Add(40 * time.Second), 0},
		"ahead, within the interval": {handed.Add(30 * time.Second), 0}, // undetectable
	} {
		if got := clockOffset(record.Trial{Started: tt.started, SetupS: 5, WarmupS: 5, DurationS: 10}, handed, seen); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// A machine with a different clock or a different program is reported once.
func TestMachineWarnings(t *testing.T) {
	c := newCluster(t, 1)
	c.fault(t, "odd", 1)
	c.fault(t, "odd", 3)
	dir, err := Run(t.Context(), config(t))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(check(t, dir, 4).Run.Warnings, "\n")
	if strings.Count(got, "the clock of node1 is behind this machine's by at least 1h0m0s") != 1 ||
		strings.Count(got, "skerry on node1 is another build") != 1 {
		t.Errorf("warnings:\n%s", got)
	}
}
