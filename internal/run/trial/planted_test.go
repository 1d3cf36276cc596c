//go:build planted

package trial

import (
	"os"
	"slices"
	"strings"
	"testing"

	"skerry/internal/evidence/verdict"
	"skerry/internal/record"
)

// Trials on an emulator with a planted fault (package planted) are suspect, because a link violated its settings.
func TestPlantedFaults(t *testing.T) {
	slow := "events=[{name: slow, at: 500ms, for: 1s, bandwidth: {ids: [client~Bergen, client~Narvik], set: 200kbit}}]"
	far := "events=[{name: far, at: 500ms, for: 1s, latency: {ids: [client~Bergen, client~Narvik], add: 4ms}}]"
	jitter := "topology.defaults={rtt: 24ms, jitter: 6ms, bandwidth: 100mbit}"
	many := "workload.threads=64" // fills the queue of a slow link; more packets also make the jitter fault change the mean more
	long := "stop.time=20s"       // jitter is judged over ten seconds or more
	tests := []struct {
		fault string
		sets  []string
		kinds []verdict.Kind
	}{
		{"departures", []string{slow, many}, []verdict.Kind{verdict.LinkLaw}},
		{"latency", nil, []verdict.Kind{verdict.LinkLaw}},
		{"jitter", []string{jitter, many, long}, []verdict.Kind{verdict.LinkJitter}},
		{"changes", []string{far}, []verdict.Kind{verdict.LinkLaw, verdict.LinkChange}},
	}
	for _, tt := range tests {
		t.Run(tt.fault, func(t *testing.T) {
			t.Setenv("SKERRY_PLANTED", tt.fault)
			x := runSmall(t, t.TempDir(), append(tt.sets, "audit=false")...)
			found := slices.ContainsFunc(tt.kinds, func(k verdict.Kind) bool { return slices.Contains(x.Verdict.Kinds, string(k)) })
			if x.Verdict.State != record.Suspect || !found {
				t.Errorf("verdict %+v", x.Verdict)
			}
			t.Log(strings.Join(x.Verdict.Reasons, "\n"))
		})
	}
	t.Run("none", func(t *testing.T) {
		if err := os.Unsetenv("SKERRY_PLANTED"); err != nil {
			t.Fatal(err)
		}
		for _, sets := range [][]string{{slow, many}, {jitter, many, long}, {far}} {
			x := runSmall(t, t.TempDir(), append(sets, "audit=false")...)
			for _, k := range []verdict.Kind{verdict.LinkLaw, verdict.LinkJitter, verdict.LinkChange} {
				if slices.Contains(x.Verdict.Kinds, string(k)) {
					t.Errorf("%v: without a fault: %+v", sets, x.Verdict)
				}
			}
		}
	})
}
