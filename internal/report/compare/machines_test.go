package compare

import (
	"strings"
	"testing"

	"skerry/internal/record"
)

func TestMachineNote(t *testing.T) {
	side := func(cell int, trials ...record.Trial) Side { return Side{Run: "x", Cell: cell, trials: trials} }
	on := func(name string, goodputs ...float64) (all []record.Trial) {
		for _, g := range goodputs {
			all = append(all, record.Trial{Goodput: g, Machine: &record.TrialMachine{Machine: record.Machine{Name: name}}})
		}
		return all
	}
	both := func(a, b []record.Trial) []record.Trial { return append(a, b...) }
	for name, tt := range map[string]struct {
		pair Pair
		want string // "" for no note
	}{
		"nobody knows where": {Pair{A: side(1, record.Trial{Goodput: 1}), B: side(2, on("h1", 1)...)}, ""},
		"no machine shared":  {Pair{A: side(1, on("h1", 1000, 990)...), B: side(2, on("h2", 500, 505)...)}, "on different machines (h1; h2)"},
		"one machine":        {Pair{A: side(1, on("h1", 1000, 990)...), B: side(2, on("h1", 500, 505)...)}, ""},
		"machines alike": {Pair{
			A: side(1, both(on("h1", 1000, 990, 1010, 995), on("h2", 1003, 992, 1009, 996))...),
			B: side(2, both(on("h1", 500, 495, 502, 506), on("h2", 501, 497, 499, 507))...),
		}, ""},
		// B was mostly on the slow machine: half of its difference is that machine's.
		"the difference is one of machines": {Pair{
			A: side(1, both(on("fast", 1000, 990, 1010, 995, 1002), on("slow", 500, 504))...),
			B: side(2, both(on("fast", 1001, 992), on("slow", 502, 497, 499, 503, 505))...),
		}, "corrected for machines, B's goodput is 100 % of A's"},
		"machines differ, and cells more": {Pair{
			A: side(1, both(on("fast", 1000, 990, 1010, 995), on("slow", 900, 904, 897, 908))...),
			B: side(2, both(on("fast", 101, 99, 100, 102), on("slow", 90, 89, 91, 90))...),
		}, ""},
	} {
		got := tt.pair.machineNote(1)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
