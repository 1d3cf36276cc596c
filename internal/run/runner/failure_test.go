package runner

import (
	"strings"
	"testing"

	"skerry/internal/record"
)

// What fails the same way again is not worth another try, and nobody is told to try it.
func TestWhatToDoAboutFailures(t *testing.T) {
	failed := func(message string) record.Trial { return record.Trial{State: record.TrialFailed, Error: message} }
	for name, tt := range map[string]struct {
		trials []record.Trial
		want   string
	}{
		"one":           {[]record.Trial{failed("no such option maxmem")}, "mend the cause, and where"},
		"alike":         {[]record.Trial{failed("node 10.1.0.3: no such option maxmem after 1.2s\nlog"), failed("node 10.2.0.7: no such option maxmem after 900ms")}, "all trials fail alike"},
		"different":     {[]record.Trial{failed("no such option"), failed("no answer")}, "mend the cause, and where"},
		"some measured": {[]record.Trial{failed("x"), failed("x"), {State: record.TrialOK}}, "try them again with: skerry run --resume runs/x"},
	} {
		if got := again(tt.trials, "runs/x"); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
