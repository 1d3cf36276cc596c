package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"skerry/internal/record"
	"skerry/internal/record/metric"
	"skerry/internal/topology"
)

// makeRun writes a run with two cells, scale 0.2 and 1, and a number of repetitions; the goodput of the second cell is
// lower by drop.
func makeRun(t *testing.T, repetitions int, drop float64) string {
	t.Helper()
	run := record.Run{Name: "x", Seed: 1}
	for rep := range repetitions {
		for cell, scale := range []float64{0.2, 1} {
			run.Plan = append(run.Plan, record.Planned{ID: len(run.Plan) + 1, Cell: cell + 1, Repetition: rep + 1,
				Parameters: map[string]any{"database": "redis", "workload": "a", "scale": scale}})
		}
	}
	w, err := record.Create(t.TempDir(), run)
	must(t, err)
	for _, p := range run.Plan {
		tw, err := w.OpenTrial(p.ID)
		must(t, err)
		must(t, tw.Topology(topology.Topology{Nodes: []topology.Node{
			{Name: "n1", Role: topology.Data, CPU: 2}, {Name: "client", Role: topology.Client}}}))
		goodput, cpu := 1000+float64(10*p.Repetition), 0.5
		if p.Cell == 2 {
			goodput, cpu = goodput-drop, 1.5
		}
		for s := range int64(20) {
			must(t, tw.NodeSeconds(record.NodeSecond{T: s, Node: "n1", CPU: cpu + float64(s)/100}, record.NodeSecond{T: s, Node: "@host", CPU: 2}))
		}
		must(t, tw.Finish(record.Trial{State: record.TrialOK, Goodput: goodput, Verdict: record.Verdict{State: record.Valid},
			Outcomes:   record.Outcomes{OK: 100},
			Operations: map[string]record.OperationSummary{"READ": {Count: 100, Response: record.Latency{P95: 1000}}}}))
	}
	must(t, w.Finish())
	return w.Dir()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func find(t *testing.T, p Pair, name string) Metric {
	t.Helper()
	for _, m := range p.Metrics {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("metric %s is missing", name)
	return Metric{}
}

func TestTwoCellsOfOneRun(t *testing.T) {
	dir := makeRun(t, 5, 500)
	for _, args := range [][]string{{dir}, {dir + ":1", dir + ":2"}, {dir + ":scale=0.2", dir + ":scale=1"}} {
		r, err := Runs(args, 1)
		must(t, err)
		if len(r.Pairs) != 1 {
			t.Fatalf("%v: %d pairs", args, len(r.Pairs))
		}
		m := find(t, r.Pairs[0], "goodput")
		if m.A.N != 5 || m.A.Mean != 1030 || m.B.Mean != 530 || math.Abs(*m.A.Variance-250) > 1e-9 || *m.P != 2.0/252 || *m.HedgesG > -20 {
			t.Errorf("%v: %+v", args, m)
		}
		if !strings.Contains(m.Sentence, "49 % lower in B") || !strings.Contains(m.Sentence, "large effect") {
			t.Errorf("%v: %s", args, m.Sentence)
		}
		if same := find(t, r.Pairs[0], "read.p95"); same.HedgesG != nil || !strings.Contains(same.Sentence, "the same on both sides") {
			t.Errorf("%+v", same)
		}
	}
}

func TestCPUIsPercentOfDataNodeQuota(t *testing.T) {
	r, err := Runs([]string{makeRun(t, 2, 0)}, 1)
	must(t, err)
	c := r.Pairs[0].CPU
	if c == nil || c.Unit != "%" || math.Abs(c.A.Mean-29.75) > 1e-6 || math.Abs(c.B.Mean-79.75) > 1e-6 || len(c.A.Curve) != 20 {
		t.Fatalf("%+v", c)
	}
	if last := c.A.CDF[len(c.A.CDF)-1]; last.Y != 1 || math.Abs(last.X-34.5) > 1e-6 {
		t.Errorf("the distribution ends at %+v", last)
	}
}

func TestRunsMatchesCellsByParameters(t *testing.T) {
	r, err := Runs([]string{makeRun(t, 2, 0), makeRun(t, 2, 100)}, 1)
	must(t, err)
	if len(r.Pairs) != 2 {
		t.Fatalf("%d pairs", len(r.Pairs))
	}
	for _, p := range r.Pairs {
		if p.A.Parameters["scale"] != p.B.Parameters["scale"] {
			t.Errorf("%v against %v", p.A.Parameters, p.B.Parameters)
		}
	}
	m := find(t, r.Pairs[1], "goodput")
	if *m.P < significant || !strings.Contains(m.Sentence, "so few repetitions") {
		t.Errorf("two repetitions each show a difference: %+v", m)
	}
}

func TestOneRepetitionHasNoTest(t *testing.T) {
	m := compareMetric("goodput", metric.Rate, []float64{100}, []float64{200}, 1)
	if m.HedgesG != nil || m.P != nil || m.A.CI95 != nil || !strings.Contains(m.Sentence, "one repetition cannot") {
		t.Errorf("%+v", m)
	}
}

func TestRunsReportsIncomparable(t *testing.T) {
	dir := makeRun(t, 1, 0)
	for _, args := range [][]string{{dir + ":1"}, {dir + ":7", dir + ":1"}, {dir + ":scale=3", dir}, {dir + ":x", dir}} {
		if _, err := Runs(args, 1); !errors.Is(err, ErrCells) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if _, err := Runs([]string{dir + "/nothing", dir}, 1); err == nil {
		t.Error("a missing run")
	}
}

func TestOutputs(t *testing.T) {
	r, err := Runs([]string{makeRun(t, 5, 500)}, 1)
	must(t, err)
	var text bytes.Buffer
	must(t, r.Text(&text, false))
	for _, want := range []string{"goodput", "Hedges' g", "CPU of data nodes over seconds, %"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, text.String())
		}
	}
	var back Report
	b, err := json.Marshal(r)
	must(t, err)
	must(t, json.Unmarshal(b, &back))
	if back.Schema != Schema || len(back.Pairs[0].Metrics) != len(r.Pairs[0].Metrics) {
		t.Errorf("%+v", back)
	}
}
