package runner

import (
	"testing"

	"skerry/internal/record"
)

// Only what may be gone the next time is run again, and only where nothing else is wrong.
func TestMayPass(t *testing.T) {
	suspect := func(kinds ...string) record.Trial {
		return record.Trial{State: record.TrialOK, Verdict: record.Verdict{State: record.Suspect, Kinds: kinds}}
	}
	for name, tt := range map[string]struct {
		trial record.Trial
		want  bool
	}{
		"late":                 {suspect("emulator-late", "driver-late"), true},
		"stolen":               {suspect("steal"), true},
		"cores full":           {suspect("driver-late", "host-cpu"), false},
		"cores full by others": {record.Trial{State: record.TrialOK, Beside: 3, Verdict: record.Verdict{State: record.Suspect, Kinds: []string{"driver-late", "host-cpu"}}}, true},
		"full by itself":       {record.Trial{State: record.TrialOK, Beside: 3, Verdict: record.Verdict{State: record.Suspect, Kinds: []string{"driver-cpu"}}}, false},
		"an event failed":      {suspect("steal", "event-failed"), false},
		"no evidence":          {suspect("no-evidence"), false},
		"of an older skerry":   {suspect(), false},
		"of a newer one":       {suspect("steal", "another-kind"), false},
		"valid":                {record.Trial{State: record.TrialOK, Verdict: record.Verdict{State: record.Valid}}, false},
		"failed":               {record.Trial{State: record.TrialFailed}, false},
	} {
		if got := mayPass(tt.trial); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
