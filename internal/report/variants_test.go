package report

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"skerry/internal/record"
)

// variants are runs in all states.
func variants() map[string]fixture {
	killed := small
	killed.only = 4
	oneScale := small
	oneScale.scales, oneScale.repetitions = []float64{1}, 2
	databases := quickstart
	databases.databases, databases.workloads, databases.repetitions = []string{"cassandra", "redis"}, []string{"a", "e"}, 2
	single := fixture{databases: []string{"redis"}, workloads: []string{"a"}, scales: []float64{1}, repetitions: 1, seconds: 3}
	odd := quickstart
	odd.scales = []float64{0, 0.35, 1.5}
	long := single
	long.seconds = 1000
	return map[string]fixture{"quickstart": quickstart, "killed": killed, "one scale": oneScale,
		"two databases": databases, "one trial": single, "other scales": odd, "long": long}
}

func TestTextOfVariants(t *testing.T) {
	for name, f := range variants() {
		t.Run(name, func(t *testing.T) {
			dir := f.make(t)
			for _, o := range []TextOptions{{}, {Trials: true, Width: 80}} {
				out := text(t, dir, o)
				if !strings.Contains(out, "quickstart") || !strings.Contains(out, "──") {
					t.Errorf("the table of quickstart is missing:\n%s", out)
				}
			}
		})
	}
}

func TestNewFigures(t *testing.T) {
	f := NewFigures(open(t, smallRun(t)))
	findings := strings.Join(f.Findings, "\n")
	for _, e := range f.Environment {
		findings += "\n" + e.Name + ": " + e.Value
	}
	for _, want := range []string{
		"Throughput of workload A falls 4.7× from 0.2 × the distances to 1 × the distances",
		"AMD EPYC 7B13", "the kernel has no netem", "redis: 7.0.15",
	} {
		if !strings.Contains(findings, want) {
			t.Errorf("%q is missing in\n%s", want, findings)
		}
	}
	if f.RerunCommand != "skerry run quickstart.yaml" || f.Tally.Valid != 16 || f.Tally.Planned != 18 || f.Unfinished != "" {
		t.Errorf("again %q, %+v, unfinished %q", f.RerunCommand, f.Tally, f.Unfinished)
	}
}

// The bottleneck of a cell and the cause of its 99th percentile are no verdicts.
func TestBoundColumns(t *testing.T) {
	f := quickstart
	f.change = func(t *record.Trial) {
		t.Bound = &record.Bound{By: "target", Text: "the target was reached"}
		t.LatencyBound = &record.LatencyBound{P99: record.LatencyCause{By: "disk", Text: "80 ms", OfMachine: true}}
		t.Verdict = record.Verdict{State: record.Valid}
	}
	dir := f.make(t)
	for _, o := range []TextOptions{{}, {Trials: true}} {
		out := text(t, dir, o)
		head := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(out, "bound by", "bound-by"), "p99 made by", "p99-made-by"))
		if !slices.Contains(head, "bound-by") || !slices.Contains(head, "p99-made-by") || !strings.Contains(out, "target    disk         valid") {
			t.Errorf("the table lacks the bottleneck:\n%s", out)
		}
	}
	if out := text(t, dir, TextOptions{}); !strings.Contains(out,
		"The main cause of the 99th percentile response time was disk: 80 ms. The machine causes it, not the database.") {
		t.Errorf("the finding is missing:\n%s", out)
	}
}

func TestHostileNamesAreSanitized(t *testing.T) {
	f := quickstart
	f.suspect, f.repetitions = 2, 2
	f.hostile = "\x1b[31m<script>alert(1)</script>\"'><img src=x onerror=alert(1)> {{.}} </title></style></svg>&\x00\u202e-->"
	dir := f.make(t)
	for _, o := range []TextOptions{{}, {Trials: true}, {Width: 80}} {
		out := text(t, dir, o)
		if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("the text contains %q", out[i:i+4])
		}
	}
}

func TestRunsWithoutTrials(t *testing.T) {
	for name, plan := range map[string][]record.Planned{"none planned": nil, "none ended": small.plan()} {
		t.Run(name, func(t *testing.T) {
			w, err := record.Create(t.TempDir(), record.Run{Name: "empty", Started: fixtureStart, Plan: plan})
			must(t, err)
			defer w.Close()
			if out := text(t, w.Dir(), TextOptions{}); !strings.Contains(out, "no trial has ended yet") {
				t.Errorf("the text does not report that there are no trials:\n%s", out)
			}
		})
	}
}

func TestAllTrialsFailed(t *testing.T) {
	w, err := record.Create(t.TempDir(), record.Run{Name: "failed", Started: fixtureStart, Plan: small.plan()})
	must(t, err)
	defer w.Close()
	for _, p := range small.plan() {
		tw, err := w.OpenTrial(p.ID)
		must(t, err)
		must(t, tw.Finish(record.Trial{State: record.TrialFailed, Error: "no cluster"}))
	}
	if out := text(t, w.Dir(), TextOptions{}); strings.Count(out, "no cluster") != 1+18 { // the head reports the first failure
		t.Errorf("not every failure is reported:\n%s", out)
	}
}

// Unreadable parts of a trial are omitted and reported.
func TestDamagedTrialFiles(t *testing.T) {
	dir := quickstart.make(t)
	for _, name := range []string{"timeline.parquet", "nodes.parquet", "READ.response.hdr", "topology.json", "events.jsonl"} {
		must(t, os.WriteFile(filepath.Join(dir, "trials", "1", name), []byte("damage\n"), 0o600))
	}
	if out := text(t, dir, TextOptions{}); !strings.Contains(out, "note: ") || !strings.Contains(out, "READ.response.hdr") {
		t.Errorf("the text does not report the unreadable parts:\n%s", out)
	}
}

func TestJSONEqualsSummary(t *testing.T) {
	dir := quickstart.make(t)
	var b bytes.Buffer
	must(t, JSON(&b, open(t, dir)))
	want, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	must(t, err)
	if b.String() != string(want) {
		t.Error("the output differs from summary.json")
	}
}
