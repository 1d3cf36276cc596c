package compare

import (
	"strings"
	"testing"

	"skerry/internal/record"
)

func TestSettingsNote(t *testing.T) {
	side := func(cell int, settings ...map[string]string) Side {
		s := Side{Run: "x", Cell: cell}
		for _, of := range settings {
			s.trials = append(s.trials, record.Trial{Machine: &record.TrialMachine{Settings: of}})
		}
		return s
	}
	const name = "net.ipv4.tcp_congestion_control"
	cubic, bbr := map[string]string{name: "cubic"}, map[string]string{name: "bbr"}
	for what, tt := range map[string]struct {
		a, b Side
		want string // "" for no note
	}{
		"the same":             {side(1, cubic, cubic), side(2, cubic), ""},
		"another control":      {side(1, cubic), side(2, bbr), name + " is cubic in A and bbr in B"},
		"two within a side":    {side(1, cubic), side(2, bbr, cubic), name + " is cubic in A and bbr or cubic in B"},
		"an older run":         {side(1, nil), side(2, cubic), "not for x, cell 1"},
		"an older run as B":    {side(1, cubic), side(2, nil), "not for x, cell 2"},
		"two older runs":       {side(1, nil), side(2, nil), ""},
		"no lab came up":       {Side{trials: []record.Trial{{}}}, Side{trials: []record.Trial{{}}}, ""},
		"follows from routing": {side(1, map[string]string{name: "cubic", "net.ipv4.ip_forward": "1"}), side(2, cubic), ""},
		"a buffer of the host": {side(1, map[string]string{name: "cubic", "net.core.rmem_max": "212992"}),
			side(2, map[string]string{name: "cubic", "net.core.rmem_max": "4194304"}), "net.core.rmem_max is 212992 in A and 4194304 in B"},
	} {
		got := Pair{A: tt.a, B: tt.b}.settingsNote()
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", what, got, tt.want)
		}
	}
}

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
		"machines unknown":  {Pair{A: side(1, record.Trial{Goodput: 1}), B: side(2, on("h1", 1)...)}, ""},
		"no machine shared": {Pair{A: side(1, on("h1", 1000, 990)...), B: side(2, on("h2", 500, 505)...)}, "on different machines (h1; h2)"},
		"one machine":       {Pair{A: side(1, on("h1", 1000, 990)...), B: side(2, on("h1", 500, 505)...)}, ""},
		"machines alike": {Pair{
			A: side(1, both(on("h1", 1000, 990, 1010, 995), on("h2", 1003, 992, 1009, 996))...),
			B: side(2, both(on("h1", 500, 495, 502, 506), on("h2", 501, 497, 499, 507))...),
		}, ""},
		// B was mostly on the slow machine: half of its difference is that machine's.
		"the machines explain the difference": {Pair{
			A: side(1, both(on("fast", 1000, 990, 1010, 995, 1002), on("slow", 500, 504))...),
			B: side(2, both(on("fast", 1001, 992), on("slow", 502, 497, 499, 503, 505))...),
		}, "corrected for machines, B's goodput is 100 % of A's"},
		"machines differ, cells differ more": {Pair{
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
