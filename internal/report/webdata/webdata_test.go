package webdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/record"
	"skerry/internal/report"
	"skerry/internal/report/compare"
	"skerry/internal/report/series"
	"skerry/test/testkit"
)

// stored is a real run: two scales, two repetitions, a link cut and a site paused.
const stored = "testdata/two-distances"

func open(t *testing.T, dir string) *record.Dir {
	t.Helper()
	d, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func newRunOf(d *record.Dir) Run { return newRun(d, report.NewFigures(d)) }

func TestRunDocument(t *testing.T) {
	doc := newRunOf(open(t, stored))
	if doc.Schema != Schema || doc.Name != "two-distances" || doc.Seed != "11" || doc.Tally.Planned != 4 {
		t.Errorf("head is %q %q seed %q %+v", doc.Schema, doc.Name, doc.Seed, doc.Tally)
	}
	if diff := cmp.Diff([]Axis{{"scale", "scale", []string{"0.5", "1"}}}, doc.Vary); diff != "" {
		t.Error(diff)
	}
	if len(doc.Cells) != 2 || len(doc.Trials) != 4 {
		t.Fatalf("%d cells and %d trials", len(doc.Cells), len(doc.Trials))
	}
	for i, c := range doc.Cells {
		e := c.Estimates[goodput]
		if diff := cmp.Diff([]int{i}, c.Values); diff != "" || e.N != 2 || e.Half <= 0 || e.Within {
			t.Errorf("cell %d: %+v %s", i, e, diff)
		}
		if c.Operation != "READ" || c.Estimates["p99"].Mean <= c.Estimates["p50"].Mean || c.Estimates["recover"].N != 2 {
			t.Errorf("cell %d: %s %+v", i, c.Operation, c.Estimates)
		}
	}
	kinds := []string{}
	for _, h := range doc.Highlights {
		kinds = append(kinds, h.Kind)
	}
	if diff := cmp.Diff([]string{"trust", "effect", "recovery"}, kinds); diff != "" {
		t.Error(diff)
	}
}

func TestTrialDocument(t *testing.T) {
	d := open(t, stored)
	trial := d.Summary.Trials[0]
	doc := NewDetail(d, trial, 4)
	if len(doc.Notes) > 0 {
		t.Fatal(doc.Notes)
	}
	sum, heat, curves := 0.0, int64(0), int64(0)
	for i, ok := range doc.Timeline.OK {
		if doc.Timeline.T[i] >= 0 {
			sum += ok // bins of about one second
		}
	}
	if math.Abs(sum/float64(trial.Outcomes.OK)-1) > 0.05 {
		t.Errorf("the timeline has %g operations, want %d", sum, trial.Outcomes.OK)
	}
	for _, column := range doc.Heat.Counts {
		for _, n := range column {
			heat += n
		}
	}
	for _, c := range doc.Curves {
		if c.Clock == "response" {
			curves += c.Count
		}
		if len(c.Tail) != len(c.US) || c.Tail[0] != 1 || c.Tail[len(c.Tail)-1] != 0 {
			t.Errorf("curve %s %s starts at %v", c.Operation, c.Clock, c.Tail)
		}
	}
	if heat != trial.Outcomes.OK || curves != trial.Outcomes.OK {
		t.Errorf("heat map has %d and curves %d operations, want %d", heat, curves, trial.Outcomes.OK)
	}
	names := []string{}
	for _, b := range doc.Bands {
		names = append(names, b.Name)
	}
	if diff := cmp.Diff([]string{"scale", "cut", "lost"}, names); diff != "" {
		t.Error(diff)
	}
	if len(doc.Cloud.Sites) != 3 || len(doc.Cloud.Nodes) != 7 || len(doc.Links) != 21 || len(doc.Traffic.Bytes) == 0 {
		t.Errorf("cloud %+v, %d links", doc.Cloud, len(doc.Links))
	}
	if n := doc.Nodes; len(n.Series) != len(n.Names) || len(n.Series[0].CPU) != len(n.T) {
		t.Errorf("%d names, %d series", len(n.Names), len(n.Series))
	}
}

// The types of the front end declare that no list is null.
func TestDocumentsContainNoNull(t *testing.T) {
	damaged := t.TempDir()
	if err := os.CopyFS(damaged, os.DirFS(stored)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(damaged, "trials")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{stored, damaged} {
		d := open(t, dir)
		for name, doc := range map[string]any{
			"run": newRunOf(d), "trial": NewDetail(d, d.Summary.Trials[0], 4), "nothing": newRunOf(&record.Dir{}),
		} {
			text, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			if places, err := testkit.FindNulls(text); err != nil || len(places) > 0 {
				t.Errorf("%s of %s: null at %v, %v", name, dir, places, err)
			}
		}
	}
}

const page = "<html><head>" + title + "</head><body>" + marker + "</body></html>"

// documents reads the data of a page back.
func documents(t *testing.T, page string) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, m := range regexp.MustCompile(`<script type="application/x-skerry" id="data-([a-z0-9-]+)">([A-Za-z0-9+/=]+)</script>`).FindAllStringSubmatch(page, -1) {
		raw, err := base64.StdEncoding.DecodeString(m[2])
		if err != nil {
			t.Fatal(err)
		}
		r, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
		out[m[1]] = v
	}
	return out
}

func TestNamesAreEscaped(t *testing.T) {
	evil := `</script><script>alert(1)</script><!--` + title + marker
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(stored)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "run.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	quoted, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.ReplaceAll(b, []byte("two-distances"), bytes.Trim(quoted, `"`))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	var w bytes.Buffer
	if err := Write(&w, []byte(page), open(t, dir)); err != nil {
		t.Fatal(err)
	}
	if s := w.String(); strings.Contains(s, "<script>") || strings.Contains(s, "<!--") || strings.Count(s, "</script>") != 5 {
		t.Error("a name was not escaped")
	}
	docs := documents(t, w.String())
	if len(docs) != 5 || docs["run"].(map[string]any)["name"] != evil {
		t.Errorf("%d documents", len(docs))
	}
}

func TestWriteFileReplacesWholeFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(stored)); err != nil {
		t.Fatal(err)
	}
	path, err := WriteFile("", []byte(page), open(t, dir))
	if err != nil || path != filepath.Join(dir, FileName) {
		t.Fatalf("written to %s: %v", path, err)
	}
	whole, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(string(whole), "</html>") {
		t.Errorf("%v: the page ends with %.20q", err, whole[max(0, len(whole)-20):])
	}
	if _, err := WriteFile("", []byte("<html></html>"), open(t, dir)); err == nil {
		t.Error("writing to another page returned no error")
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, whole) {
		t.Errorf("a failure changed the report: %v", err)
	}
	if _, err := WriteFile(filepath.Join(dir, "none", "x.html"), []byte(page), open(t, dir)); err == nil {
		t.Error("writing into a missing directory returned no error")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".report*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWriteRejectsOtherPage(t *testing.T) {
	if err := Write(io.Discard, []byte("<html></html>"), open(t, stored)); err == nil {
		t.Error("no error")
	}
}

func TestDamagedFilesAreNoted(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(stored)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"timeline.parquet", "nodes.parquet", "READ.response.hdr", "topology.json", "events.jsonl"} {
		if err := os.WriteFile(filepath.Join(dir, "trials/2", name), []byte("damage\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := open(t, dir)
	doc := NewDetail(d, d.Summary.Trials[1], 4)
	if len(doc.Notes) != 5 || doc.Timeline != nil || len(doc.Curves) == 0 {
		t.Errorf("%d notes: %v", len(doc.Notes), doc.Notes)
	}
}

// A hundred trials of ten minutes on ten nodes make a report below five megabytes.
func TestHundredTrialsStaySmall(t *testing.T) {
	const trials, pageSize, bound = 100, 900_000, 5_000_000
	r := rand.New(rand.NewPCG(1, 2))
	l := newLimits(trials)
	noise := func(mean float64) float64 { return mean * math.Exp(0.3*r.NormFloat64()) }
	var seconds []record.Second
	var nodes []record.NodeSecond
	for s := range int64(600) {
		seconds = append(seconds, record.Second{T: s, Length: 1, OK: int64(noise(5000)), ServiceP50: noise(900), ServiceP99: noise(9000),
			ServiceP999: noise(40000),
			ResponseP50: noise(950), ResponseP99: noise(10000), ResponseP999: noise(50000), InFlight: 32})
		for n := range 11 {
			nodes = append(nodes, record.NodeSecond{T: s, Node: string(rune('a' + n)), CPU: noise(0.3), Memory: int64(noise(3e8)),
				ReadBytes: int64(noise(1e4)), WroteBytes: int64(noise(1e5)),
				RxBytes: int64(noise(1e6)), TxBytes: int64(noise(1e6))})
		}
	}
	heat := &series.Heat{}
	for range l.heat {
		column := make([]int64, 40)
		for j := range column {
			column[j] = int64(noise(500))
		}
		heat.Counts = append(heat.Counts, column)
	}
	b, err := encodeDocument("trial-1", Detail{Timeline: series.NewTimeline(seconds, l.points),
		Nodes: series.NewNodes(nodes, l.nodes, math.MaxInt, l.nodeValues), Heat: heat})
	if err != nil {
		t.Fatal(err)
	}
	if size := pageSize + trials*len(b); size > bound {
		t.Errorf("%d bytes a trial make %d bytes", len(b), size)
	}
}

// Cells are compared by any kind of operation that they have, not only by the most frequent one.
func TestCellLatenciesByOperation(t *testing.T) {
	doc := newRunOf(open(t, stored))
	if diff := cmp.Diff([]string{"READ", "UPDATE"}, doc.Operations); diff != "" {
		t.Error(diff)
	}
	for _, c := range doc.Cells {
		of := map[string]series.Number{}
		for _, l := range c.Latencies {
			of[l.Operation] = l.Estimates["p95"].Mean
		}
		if of["READ"] <= 0 || of["UPDATE"] <= 0 || of[c.Operation] != c.Estimates["p95"].Mean {
			t.Errorf("%s: %v, the leading %s has %v", c.Label, of, c.Operation, c.Estimates["p95"].Mean)
		}
	}
}

// The page of a comparison has its document, and its tables for readers without JavaScript.
func TestComparison(t *testing.T) {
	r, err := compare.Runs([]string{stored}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var w bytes.Buffer
	if err := WriteComparison(&w, []byte(page), r); err != nil {
		t.Fatal(err)
	}
	docs := documents(t, w.String())
	if len(docs) != 1 || docs["comparison"].(map[string]any)["schema"] != compare.Schema {
		t.Errorf("documents %v", docs)
	}
	if s := w.String(); !strings.Contains(s, "<title>Comparison – Skerry</title>") || !strings.Contains(s, "Hedges&#39; g") {
		t.Errorf("the page lacks its title or its text:\n%.2000s", s)
	}
	if err := WriteComparison(io.Discard, []byte("<html></html>"), r); !errors.Is(err, ErrPage) {
		t.Errorf("another page: %v", err)
	}
}
