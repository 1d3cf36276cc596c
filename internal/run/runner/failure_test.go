package runner

import (
	"testing"

	"skerry/internal/record"
)

func TestFailuresOfOneCauseAreAlike(t *testing.T) {
	failed := func(message string) record.Trial { return record.Trial{State: record.TrialFailed, Error: message} }
	for name, tt := range map[string]struct {
		trials []record.Trial
		want   bool
	}{
		"one":           {[]record.Trial{failed("no such option maxmem")}, false},
		"alike":         {[]record.Trial{failed("node 10.1.0.3: no such option maxmem after 1.2s\nlog"), failed("node 10.2.0.7: no such option maxmem after 900ms")}, true},
		"different":     {[]record.Trial{failed("no such option"), failed("no answer")}, false},
		"some measured": {[]record.Trial{failed("x"), failed("x"), {State: record.TrialOK}}, false},
	} {
		if got := allAlike(tt.trials); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
