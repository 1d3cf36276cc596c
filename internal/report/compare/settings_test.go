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
