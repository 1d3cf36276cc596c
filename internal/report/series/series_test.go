package series

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/record"
)

// stored is a real run: two scales, two repetitions, a link cut and a site paused.
const stored = "../webdata/testdata/two-distances"

func TestThinnedTimelineKeepsCountsAndMaximum(t *testing.T) {
	rows := make([]record.Second, 0, 3605)
	for s := -5; s < 3600; s++ {
		rows = append(rows, record.Second{T: int64(s), Length: 1, OK: int64(1000 + s%7), ServiceP99: float64(s)})
	}
	thin := NewTimeline(rows, 600)
	if len(thin.T) > 602 || thin.BinS != 7 {
		t.Fatalf("%d bins of %d s", len(thin.T), thin.BinS)
	}
	sum, want := 0.0, int64(0)
	for i, ok := range thin.OK {
		end := 3600.0
		if i+1 < len(thin.T) {
			end = thin.T[i+1]
		}
		if thin.T[i] < 0 && end > 0 {
			t.Errorf("a bin mixes warm-up and measurement: from %g to %g", thin.T[i], end)
		}
		if thin.T[i] >= 0 && thin.ServiceP99[i] != end-1 {
			t.Errorf("bin at %g has p99 %g", thin.T[i], thin.ServiceP99[i])
		}
		sum += ok * (end - thin.T[i])
	}
	for _, r := range rows {
		want += r.OK
	}
	if math.Abs(sum-float64(want)) > 1 {
		t.Errorf("got %g operations, want %d", sum, want)
	}
}

func TestNodesShowsBusiest(t *testing.T) {
	rows := []record.NodeSecond{{T: 0, Node: "@host", CPU: 0.1}}
	for i := range 100 {
		rows = append(rows, record.NodeSecond{T: 0, Node: "n" + string(rune('A'+i%26)) + string(rune('a'+i/26)), CPU: float64(i), Memory: 7})
	}
	n := NewNodes(rows, 5, 200, 1000)
	if diff := cmp.Diff([]string{"nSd", "nTd", "nUd", "nVd", "@host"}, n.Names); diff != "" || n.Hidden != 96 {
		t.Errorf("%d hidden %s", n.Hidden, diff)
	}
}

func TestNumberJSON(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 3: "3", -2: "-2", 0.123456: "0.12346", 1234.5678: "1234.6", 123456: "123460",
		220890213: "220890000", 1e20: "1e+20",
		math.NaN(): "null", math.Inf(1): "null"} {
		if got := string(appendNumber(nil, v, digits)); got != want {
			t.Errorf("%g is formatted as %s, want %s", v, got, want)
		}
	}
	b, err := json.Marshal(Values(nil))
	if err != nil || string(b) != "[]" {
		t.Errorf("an empty series is %s, %v", b, err)
	}
}

func TestProbesAndOperations(t *testing.T) {
	job := func(at float64, p95 map[string]float64) record.Probe {
		p := record.Probe{StartS: at, Operations: map[string]record.OperationSummary{}}
		for name, us := range p95 {
			p.Operations[name] = record.OperationSummary{Count: 10, Service: record.Latency{P95: us}}
		}
		return p
	}
	got := NewProbes([]record.Probe{job(5.5, map[string]float64{"READ": 700, "INSERT": 40}),
		job(0.25, map[string]float64{"READ": 600}), {StartS: 9, Error: "refused"}})
	want := &Probes{T: Values{0.25, 5.5, 9}, Names: []string{"INSERT", "READ"}, P95: []Values{{0, 40, 0}, {600, 700, 0}}, Failed: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	d, err := record.Open(stored)
	if err != nil {
		t.Fatal(err)
	}
	id := d.Summary.Trials[0].ID
	_, _, all, err := ReadLatencies(d, id, 1000, 40)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"READ", "UPDATE"}, all.Names); diff != "" || all.BinS != 1 || len(all.T) < 10 {
		t.Fatalf("%d bins of %d s: %s", len(all.T), all.BinS, diff)
	}
	_, _, few, err := ReadLatencies(d, id, 4, 4)
	if err != nil || len(few.T) > 4 {
		t.Fatalf("%d bins, %v", len(few.T), err)
	}
	for i := range few.Names {
		if len(all.P95[i]) != len(all.T) || len(few.P95[i]) != len(few.T) {
			t.Fatalf("%s: %d and %d values", few.Names[i], len(all.P95[i]), len(few.P95[i]))
		}
		if a, b := slices.Max(all.P95[i]), slices.Max(few.P95[i]); a != b || a <= 0 {
			t.Errorf("%s: highest %g, thinned %g", few.Names[i], a, b)
		}
	}
}

func TestRates(t *testing.T) {
	seconds := []record.Second{{T: -1, Length: 1}, {T: 0, Length: 1}, {T: 1, Length: 1}, {T: 2, Length: 1}, {T: 3, Length: 1}}
	rows := []record.ErrorSecond{
		{T: 1, Operation: "READ", Outcome: "unknown", Class: "timeout", Count: 4},
		{T: 1, Operation: "UPDATE", Outcome: "unknown", Class: "timeout", Count: 2},
		{T: 3, Operation: "READ", Outcome: "failed", Class: "refused", Count: 1},
	}
	got := ErrorRates(rows, seconds, 3)
	want := &Rates{BinS: 2, T: Moments{-1, 0, 2}, Names: []string{"failed refused", "unknown timeout"}, Rate: []Values{{0, 0, 0.5}, {0, 3, 0}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors by class (-want +got):\n%s", diff)
	}
	if got := ErrorRates(nil, seconds, 3); got != nil {
		t.Errorf("without errors %+v, want nil", got)
	}
	pools := PoolRates([]record.PoolSecond{{Pool: "readers", Second: record.Second{T: 0, OK: 8}},
		{Pool: "writers", Second: record.Second{T: 0, OK: 3}}}, seconds[1:2], 10)
	if diff := cmp.Diff(&Rates{BinS: 1, T: Moments{0}, Names: []string{"readers", "writers"}, Rate: []Values{{8}, {3}}}, pools); diff != "" {
		t.Errorf("workloads (-want +got):\n%s", diff)
	}
}
