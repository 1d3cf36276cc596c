package metric

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"skerry/internal/record"
)

// full is a trial with all kinds of figures.
func full() record.Trial {
	took := 1.5
	return record.Trial{
		Goodput: 100, Throughput: 110, Outcomes: record.Outcomes{OK: 990, Failed: 6, Unknown: 3, Dropped: 1},
		Operations: map[string]record.OperationSummary{
			"READ":              {Count: 500, Response: record.Latency{P95: 250_000}, Service: record.Latency{P95: 200_000}},
			"READ-MODIFY-WRITE": {Count: 10}, "SCAN": {Failed: 4},
		},
		Audit: &record.Audit{Lost: 2},
		Events: []record.EventImpact{
			{Name: "leave", Kind: "leave", AcceptedS: &took, CompleteS: &took,
				Recovery: record.Recovery{BaselineOps: 100, RecoverS: 4, TakeoverS: &took}},
			{Name: "power cut", Kind: "leave", Recovery: record.Recovery{BaselineOps: 100, RecoverS: 60, Censored: true}},
		},
	}
}

func TestAllTrialNamesParse(t *testing.T) {
	for _, v := range Values(full()) {
		n, err := ParseName(v.Name)
		if err != nil || n.Unit != v.Unit {
			t.Errorf("%s: %+v, %v; unit in the trial is %q", v.Name, n, err, v.Unit)
		}
	}
}

func TestFigures(t *testing.T) {
	got := map[string][]Value{}
	for _, v := range Values(full()) {
		got[v.Name] = append(got[v.Name], v)
	}
	for name, want := range map[string]float64{"availability": 0.99, "read.p95": 0.25, "read.service.p95": 0.2, "lost_writes": 2,
		"read_modify_write.count": 10} {
		if len(got[name]) != 1 || got[name][0].V != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	if _, ok := got["scan.p95"]; ok {
		t.Error("a latency without a successful operation")
	}
	r := got["events.leave.recover"]
	if len(r) != 2 || r[0].LowerBound || r[0].upperBound() != 4 || !r[1].LowerBound || r[1].upperBound() < 1e300 {
		t.Errorf("recovery of both events: %+v", r)
	}
}

func TestUnknownNamesSuggestNearest(t *testing.T) {
	for name, hint := range map[string]string{
		"read.p59": `"read.p`, "goodputt": `"goodput"`, "events.leave.recovery": `"events.leave.recover"`, "events": "events.NAME",
		"": "want one of", "lost_write": `"lost_writes"`,
	} {
		if _, err := ParseName(name); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), hint) {
			t.Errorf("%q: %v, want a hint of %s", name, err, hint)
		}
	}
	if n, err := ParseName("events.power cut.recover"); err != nil || n.Event != "power cut" {
		t.Errorf("%+v, %v", n, err)
	}
}

// The documentation lists all metrics of assertions, with their units.
func TestDocs(t *testing.T) {
	ofTrial, ofOperation, ofEvent := Docs()
	if len(ofTrial) != len(trialMetrics) || len(ofEvent) != len(eventMetrics) {
		t.Errorf("%d and %d metrics, want %d and %d", len(ofTrial), len(ofEvent), len(trialMetrics), len(eventMetrics))
	}
	for _, d := range slices.Concat(ofTrial, ofOperation, ofEvent) {
		name := strings.NewReplacer("OPERATION", "read", "NAME", "leave").Replace(d.Name)
		n, err := ParseName(name)
		if err != nil || n.Unit != d.Unit || d.Text == "" {
			t.Errorf("%+v: %+v %v", d, n, err)
		}
	}
}
