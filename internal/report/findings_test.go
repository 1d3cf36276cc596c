package report

import (
	"strings"
	"testing"

	"skerry/internal/record"
)

// The advice follows from the most frequent reason for suspicion, if it concerns the machine.
func TestCommonRemedy(t *testing.T) {
	for name, tt := range map[string]struct {
		kinds [][]string // kinds of reasons of each trial
		want  string     // prefix of the advice
	}{
		"late twice, full once": {[][]string{{"driver-late", "emulator-late"}, {"steal"}, {"host-cpu"}}, "CPU time was delayed"},
		"full":                  {[][]string{{"host-cpu"}, {"driver-cpu", "driver-late"}}, "CPU saturated"},
		"the database's":        {[][]string{{"event-failed"}, {"audit"}}, ""},
		"not told":              {[][]string{{}}, ""},
	} {
		m := &model{dir: &record.Dir{}}
		for _, k := range tt.kinds {
			m.dir.Summary.Trials = append(m.dir.Summary.Trials, record.Trial{Verdict: record.Verdict{State: record.Suspect, Kinds: k}})
		}
		if got := m.commonRemedy(); !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Real links have a separate finding and are not counted with the emulated ones.
func TestRealLinkFinding(t *testing.T) {
	trial := func(before float64, seen *record.LinkSeen) record.Trial {
		return record.Trial{State: record.TrialOK, Fidelity: record.Fidelity{Links: []record.LinkFidelity{
			{ID: "a~b", From: "a", To: "b", Real: true, Answered: true, RTTMS: before, Seen: seen},
			{ID: "a~c", From: "a", To: "c", SetRTTMS: 10, Answered: true, RTTMS: 10.1, RTTErrorMS: 0.1},
		}}}
	}
	trials := []record.Trial{
		trial(20.1, &record.LinkSeen{Sent: 100, Lost: 1, MedianMS: 20.2, P99MS: 30}),
		trial(20.3, &record.LinkSeen{Sent: 100, Lost: 1, MedianMS: 20.6, P99MS: 25}),
	}
	m := &model{cells: []*cell{{used: trials}}}
	findings := m.trustFinding()
	if len(findings) != 2 || !strings.HasPrefix(findings[0], "Real links, not emulated: 1,") ||
		!strings.Contains(findings[0], "20.20 – 20.60 ms") || !strings.HasPrefix(findings[1], "2 measurements of links") {
		t.Errorf("%q", findings)
	}
}
