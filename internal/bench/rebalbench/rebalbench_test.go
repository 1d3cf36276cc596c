package rebalbench

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

// TestConclude tells 2048 slots from 10 and 40: 2 s a slot, and 5 s before the first.
func TestConclude(t *testing.T) {
	s := Scale{
		Changes: []Change{{Complete: 4}, {Join: true, Complete: 100}, {Complete: 8}, {Complete: 5}},
		CLI:     []CLI{{Slots: 10, Seconds: 25}, {Slots: 40, Seconds: 85}},
	}
	s.conclude(8)
	if math.Abs(s.CLISeconds-4101) > 1e-6 || math.Abs(s.Faster-4101.0/5) > 1e-6 {
		t.Errorf("%g s, %g times faster; want 4101 s and 820.2", s.CLISeconds, s.Faster)
	}
	var out bytes.Buffer
	if err := (Result{Masters: 8, Scales: []Scale{s}}).Text(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"5.00 s", "below 30 s", "820 x faster", "40 slots", "extrapolated", "4101 s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// TestConcludeMeasured has redis-cli move all slots of a node: nothing is told from it.
func TestConcludeMeasured(t *testing.T) {
	s := Scale{Changes: []Change{{Complete: 5}}, CLI: []CLI{{Slots: 2048, Seconds: 3000}}}
	s.conclude(8)
	if s.CLISeconds != 3000 || s.Extrapolated || s.Faster != 600 {
		t.Errorf("%g s, extrapolated %v, %g times faster; want 3000 s, measured, 600", s.CLISeconds, s.Extrapolated, s.Faster)
	}
	var out bytes.Buffer
	if err := (Result{Masters: 8, Scales: []Scale{s}}).Text(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "extrapolated") || !strings.Contains(out.String(), "2048 slots") {
		t.Errorf("of a time that was measured it says\n%s", out.String())
	}
}
