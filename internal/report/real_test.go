package report

import (
	"strings"
	"testing"

	"skerry/internal/record"
)

// A link that was left as it is has a row with what it was, and nothing that it is off by.
func TestRealLinksInTheTable(t *testing.T) {
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
	rows := linkRows(trials)
	if len(rows) != 2 {
		t.Fatalf("%+v", rows)
	}
	if r := rows[0]; r.Set != "as it is" || r.Worst != none || r.Bad || !strings.HasPrefix(r.Measured, "20.10 – 20.30 ms; meanwhile 20.60 ms, p99 30.00 ms, 1") {
		t.Errorf("%+v", r)
	}
	if r := rows[1]; r.Set == "as it is" || r.Worst != "+0.10 ms" {
		t.Errorf("%+v", r)
	}
	m := &model{cells: []*cell{{used: trials}}}
	said := m.trustFinding()
	if len(said) != 2 || !strings.HasPrefix(said[0], "Links between machines were left as they are, 1 of them") || !strings.Contains(said[0], "20.20 – 20.60 ms") || !strings.HasPrefix(said[1], "2 measurements of links") {
		t.Errorf("%q", said)
	}
}
