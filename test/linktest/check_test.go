package linktest

import (
	"strings"
	"testing"
)

// try is a measurement: its relative error, and the share of it for which a CPU was away.
type try struct{ off, gone float64 }

// An error that a busy machine may have caused does not count against an engine; any other error does.
func TestJudgeTries(t *testing.T) {
	const limit = 0.005
	for _, tt := range []struct {
		name  string
		tries []try // in turns
		want  finding
		took  int
	}{
		{"right immediately", []try{{0.004, 0}}, right, 1},
		{"right on a busy machine", []try{{-0.004, 0.3}}, right, 1},
		{"right once the machine is quiet", []try{{-0.28, 0.1}, {-0.02, 0.1}, {0.001, 0}}, right, 3},
		{"slightly wrong on a quiet machine", []try{{-0.006, 0}}, wrong, minQuietTries},
		{"very wrong, sometimes quiet", []try{{0.5, 0.1}, {0.5, 0}, {0.5, 0.1}, {0.5, 0}, {0.5, 0.002}}, wrong, 5},
		{"always wrong by the same amount, never quiet", []try{{-0.01, 0.04}, {-0.0102, 0.3}, {-0.03, 0.3}}, wrong, maxTries},
		{"wrong by varying amounts, never quiet", []try{{-0.02, 0.01}, {-0.28, 0.3}, {-0.007, 0.02}, {0.01, 0.1}}, noisy, maxTries},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			got, tries := judgeTries(limit, func() (off, gone float64) {
				x := tt.tries[n%len(tt.tries)]
				n++
				return x.off, x.gone
			})
			if got != tt.want || n != tt.took {
				t.Errorf("finding %d after %d tries, want %d after %d", got, n, tt.want, tt.took)
			}
			if mentioned := strings.Count(tries, "off by"); got != right && mentioned != n {
				t.Errorf("%d of %d tries are listed: %s", mentioned, n, tries)
			}
		})
	}
}
