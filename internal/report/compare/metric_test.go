package compare

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"skerry/internal/record"
	"skerry/internal/record/metric"
)

func takeover(s float64) *float64 { return &s }

// trial has one operation with equal clocks, and a named event.
func trial(goodput, p95, recover float64) record.Trial {
	l := record.Latency{Mean: p95 / 2, P50: p95 / 2, P95: p95, P99: 2 * p95, P999: 3 * p95, Max: 4 * p95}
	return record.Trial{
		State: record.TrialOK, Goodput: goodput, Throughput: goodput, Outcomes: record.Outcomes{OK: 100},
		Operations: map[string]record.OperationSummary{"READ": {Count: 100, Response: l, Service: l}},
		Events: []record.EventImpact{{Name: "cut", Kind: "link_down",
			Recovery: record.Recovery{BaselineOps: 100, RecoverS: recover, TakeoverS: takeover(recover / 2), DipDepth: 0.5, Availability: 0.9}}},
	}
}

func pairOf(a, b []record.Trial) Pair {
	return comparePair(Side{trials: a, dir: &record.Dir{}}, Side{trials: b, dir: &record.Dir{}}, 1)
}

func TestDuplicateMetricsAreHidden(t *testing.T) {
	p := pairOf([]record.Trial{trial(100, 10_000, 5)}, []record.Trial{trial(50, 20_000, 9)})
	same := map[string]string{}
	for _, m := range p.Metrics {
		same[m.Name] = m.SameAs
	}
	for name, as := range map[string]string{
		"goodput": "", "throughput": "goodput", "read.p95": "", "read.service.p95": "read.p95", "events.cut.recover": "",
		"events.link_down.recover": "events.cut.recover",
	} {
		if got, ok := same[name]; !ok || got != as {
			t.Errorf("%s is the same as %q, want %q", name, got, as)
		}
	}
	text := textOf(t, p, true)
	for _, no := range []string{"read.service", "events.link_down", "throughput"} {
		if strings.Contains(text, no) {
			t.Errorf("%s appears twice:\n%s", no, text)
		}
	}
}

func textOf(t *testing.T, p Pair, all bool) string {
	t.Helper()
	var b bytes.Buffer
	must(t, Report{Pairs: []Pair{p}}.Text(&b, all))
	return b.String()
}

func TestLeadingMetrics(t *testing.T) {
	p := pairOf([]record.Trial{trial(100, 10_000, 5)}, []record.Trial{trial(50, 20_000, 9)})
	text := textOf(t, p, false)
	for _, want := range []string{"goodput", "read.p95", "read.p99", "events.cut.recover"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "events.cut.overshoot_ops") || strings.Contains(text, "read.max") {
		t.Errorf("more than the main finding:\n%s", text)
	}
}

func TestOnlyNotableDifferencesAreReported(t *testing.T) {
	p := pairOf([]record.Trial{trial(100, 10_000, 5)}, []record.Trial{trial(100.1, 20_000, 5)})
	text := textOf(t, p, false)
	if strings.Contains(text, "goodput is") || strings.Contains(text, "recover is") {
		t.Errorf("a negligible difference is reported:\n%s", text)
	}
	if n := strings.Count(text, "read.p95 is"); n != 1 {
		t.Errorf("the difference of read.p95 is reported %d times:\n%s", n, text)
	}
	noise := compareMetric("goodput", metric.Rate, []float64{100, 140, 60, 120, 80}, []float64{101, 141, 61, 121, 81}, 1)
	if noise.IsNotable() {
		t.Errorf("a negligible effect has no size: %+v", noise)
	}
}

func TestOneRepetitionHasNoSD(t *testing.T) {
	p := pairOf([]record.Trial{trial(100, 10_000, 5)}, []record.Trial{trial(50, 20_000, 9)})
	if m := p.Metrics[0]; m.A.SD != nil || m.A.Variance != nil {
		t.Errorf("%+v", m.A)
	}
	if text := textOf(t, p, true); !regexp.MustCompile(`goodput +100 ops/s +– +– +– `).MatchString(text) {
		t.Errorf("a deviation of one repetition:\n%s", text)
	}
}

// A censored recovery has no value, and is reported.
func TestCensoredRecoveriesAreReported(t *testing.T) {
	censored := trial(50, 20_000, 9)
	censored.Events[0].Recovery.Censored = true
	p := pairOf([]record.Trial{trial(100, 10_000, 5)}, []record.Trial{censored})
	if text := textOf(t, p, false); !strings.Contains(text,
		"events.cut.recover lasted longer than the observation in 0 of 1 trials of A and 1 of 1 of B") {
		t.Error(text)
	}
}
