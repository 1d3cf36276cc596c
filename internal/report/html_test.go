package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"skerry/internal/record"
)

func page(t testing.TB, dir string) string {
	t.Helper()
	var b bytes.Buffer
	must(t, HTML(&b, open(t, dir)))
	return b.String()
}

var (
	tagPattern  = regexp.MustCompile(`<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:\s+[a-zA-Z][a-zA-Z0-9-]*(?:="[^"]*")?)*)\s*(/?)>`)
	attrPattern = regexp.MustCompile(`\s([a-zA-Z][a-zA-Z0-9-]*)(?:="([^"]*)")?`)
	svgPattern  = regexp.MustCompile(`(?s)<svg.*?</svg>`)
)

// wellFormed checks that elements nest, that every < begins a tag of a known kind, and that
// nothing on the page acts or loads.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	body := strings.TrimPrefix(page, "<!DOCTYPE html>")
	if n, all := len(tagPattern.FindAllString(body, -1)), strings.Count(body, "<"); n != all {
		rest := tagPattern.ReplaceAllString(body, "")
		at := strings.IndexByte(rest, '<')
		t.Errorf("%d of %d < begin no tag, the first: %.80q", all-n, all, rest[at:])
	}
	known := strings.Fields("html head meta title style body nav div strong a main header p h1 h2 h3 h4 span ul li b em br section table thead tbody tr th td details summary pre code figure figcaption dl dt dd footer " +
		"svg line rect circle path text")
	var stack []string
	for _, m := range tagPattern.FindAllStringSubmatch(body, -1) {
		end, name, attrs, closed := m[1] == "/", m[2], m[3], m[4] == "/"
		if !slices.Contains(known, name) {
			t.Errorf("element %s is none of the report's", m[0])
		}
		for _, a := range attrPattern.FindAllStringSubmatch(attrs, -1) {
			if strings.HasPrefix(strings.ToLower(a[1]), "on") || a[1] == "src" || a[1] == "href" && !strings.HasPrefix(a[2], "#") {
				t.Errorf("attribute %s acts or loads", a[0])
			}
		}
		switch {
		case closed, name == "meta", name == "br":
		case !end:
			stack = append(stack, name)
		case len(stack) == 0 || stack[len(stack)-1] != name:
			t.Fatalf("</%s> ends %v", name, stack)
		default:
			stack = stack[:len(stack)-1]
		}
	}
	if len(stack) > 0 {
		t.Errorf("not ended: %v", stack)
	}
	for _, s := range svgPattern.FindAllString(page, -1) {
		d := xml.NewDecoder(strings.NewReader(s))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("chart: %v in %.200s", err, s)
			}
		}
		if strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
			t.Errorf("a chart with a coordinate that is no number: %.200s", s)
		}
	}
	for _, s := range []string{"ZgotmplZ", "%!", "<nil>", "url(", "@import", "http://", "https://"} {
		if strings.Contains(strings.ReplaceAll(page, `xmlns="http://www.w3.org/2000/svg"`, ""), s) {
			t.Errorf("the page contains %q", s)
		}
	}
}

// variants are runs as they may be found.
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

func TestPagesAreWellFormed(t *testing.T) {
	for name, f := range variants() {
		t.Run(name, func(t *testing.T) {
			dir := f.make(t)
			wellFormed(t, page(t, dir))
			text(t, dir, TextOptions{})
			text(t, dir, TextOptions{Trials: true, Width: 80})
		})
	}
}

func TestPageSaysWhatTheRunSays(t *testing.T) {
	p := page(t, smallRun(t))
	wellFormed(t, p)
	for _, want := range []string{
		"<h1>quickstart</h1>", "16 of 18", "Throughput of workload A falls 4.7× from 0.2 × the distances to 1 × the distances",
		"1,689 ± 165", // the table
		"Normalised throughput against the scale", "Normalised to 1 × the distances", // Fig. 5
		"MB per 1,000 operations",             // Fig. 7, 8
		`class="chart graph"`, "Pune – Seoul", // Fig. 9-12
		"Distribution of the latency of READ of workload A",       // distributions
		"Trial 5 second by second", "links at 1 of their latency", // timelines
		"the RTT of 6 of 28 links is off by more than 0.5 ms", // verdicts
		"bind: Address already in use",                        // why a trial failed
		"Melbourne – Virginia", "&#43;0.1",                    // set against measured
		"AMD EPYC 7B13", "the kernel has no netem", "redis</dt><dd>7.0.15", // environment
		"skerry run quickstart.yaml", "workload: {records: 10000, threads: 32}", // reproduce
		"real-time priority is not to be had",
	} {
		if !strings.Contains(p, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if n := strings.Count(p, `<details class="trial"`); n != 18 {
		t.Errorf("%d trials on the page, want 18", n)
	}
}

// Each column of the plain page stands under its own head: what bound a cell is no verdict.
func TestColumnsOfThePage(t *testing.T) {
	f := quickstart
	f.change = func(t *record.Trial) {
		t.Bound = &record.Bound{By: "target", Text: "the target was reached"}
		t.LatencyBound = &record.LatencyBound{P99: record.LatencyCause{By: "disk", Text: "80 ms", OfMachine: true}}
		t.Verdict = record.Verdict{State: record.Valid}
	}
	dir := f.make(t)
	p := page(t, dir)
	wellFormed(t, p)
	_, table, _ := strings.Cut(p, `<section id="results">`)
	table, _, _ = strings.Cut(table, "</table>")
	if n := strings.Count(table, `<td class="text">target</td><td class="text">disk</td><td class="text"><span class="verdict good">valid</span>`); n == 0 || n != strings.Count(table, "class=\"verdict") {
		t.Errorf("%d rows say what bound them, what made their 99th percentile, and that they are valid:\n%s", n, table)
	}
	if heads, cells := strings.Count(table, "<th"), strings.Count(table, "<td"); cells%(heads-1) != 0 { // one of them is thead
		t.Errorf("%d cells below %d heads", cells, heads-1)
	}
	for _, o := range []TextOptions{{}, {Trials: true}} {
		out := text(t, dir, o)
		head := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(out, "bound by", "bound-by"), "p99 made by", "p99-made-by"))
		if !slices.Contains(head, "bound-by") || !slices.Contains(head, "p99-made-by") || !strings.Contains(out, "target    disk         valid") {
			t.Errorf("the table does not say it:\n%s", out)
		}
	}
	if out := text(t, dir, TextOptions{}); !strings.Contains(out, "The 99th percentile of the response time was made by disk: 80 ms. That is this machine's, and not the database's.") {
		t.Errorf("no finding:\n%s", out)
	}
}

func TestHostileNamesStayText(t *testing.T) {
	f := quickstart
	f.suspect, f.repetitions = 2, 2
	f.hostile = "\x1b[31m<script>alert(1)</script>\"'><img src=x onerror=alert(1)> {{.}} </title></style></svg>&\x00\u202e-->"
	dir := f.make(t)
	p := page(t, dir)
	wellFormed(t, p)
	if !strings.Contains(p, "&lt;script&gt;") {
		t.Error("the names are not on the page at all")
	}
	for _, o := range []TextOptions{{}, {Trials: true}, {Width: 80}} {
		out := text(t, dir, o)
		if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("the text holds %q", out[i:i+4])
		}
	}
}

func TestRunsWithoutTrials(t *testing.T) {
	for name, plan := range map[string][]record.Planned{"none planned": nil, "none ended": small.plan()} {
		t.Run(name, func(t *testing.T) {
			w, err := record.Create(t.TempDir(), record.Run{Name: "empty", Started: fixtureStart, Plan: plan})
			must(t, err)
			defer w.Close()
			p := page(t, w.Dir())
			wellFormed(t, p)
			if !strings.Contains(p, "No trial has ended") {
				t.Error("the page does not say that there is nothing")
			}
			if out := text(t, w.Dir(), TextOptions{}); !strings.Contains(out, "no trial has ended yet") {
				t.Errorf("the text does not say that there is nothing:\n%s", out)
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
	wellFormed(t, page(t, w.Dir()))
	if out := text(t, w.Dir(), TextOptions{}); strings.Count(out, "no cluster") != 1+18 { // the head tells of the first
		t.Errorf("not every failure is told:\n%s", out)
	}
}

// What of a trial cannot be read is left out and said.
func TestDamagedTrialFiles(t *testing.T) {
	dir := quickstart.make(t)
	for _, name := range []string{"timeline.parquet", "nodes.parquet", "READ.response.hdr", "topology.json", "events.jsonl"} {
		must(t, os.WriteFile(filepath.Join(dir, "trials", "1", name), []byte("damage\n"), 0o600))
	}
	p := page(t, dir)
	wellFormed(t, p)
	if !strings.Contains(p, "What of the run could not be read") || !strings.Contains(p, "READ.response.hdr") {
		t.Error("the page does not say what could not be read")
	}
	if !strings.Contains(text(t, dir, TextOptions{}), "note: ") {
		t.Error("the text does not say what could not be read")
	}
}

func TestWriteHTMLReplacesWholeFiles(t *testing.T) {
	dir := quickstart.make(t)
	path, err := WriteHTML("", open(t, dir))
	must(t, err)
	if path != filepath.Join(dir, "report.html") {
		t.Errorf("written to %s", path)
	}
	b, err := os.ReadFile(path)
	must(t, err)
	if !strings.HasSuffix(strings.TrimSpace(string(b)), "</html>") {
		t.Error("the page is cut short")
	}
	if _, err := WriteHTML(filepath.Join(dir, "none", "x.html"), open(t, dir)); err == nil {
		t.Error("writing into a directory that is not there is no error")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".report*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestJSONIsTheSummary(t *testing.T) {
	dir := quickstart.make(t)
	var b bytes.Buffer
	must(t, JSON(&b, open(t, dir)))
	want, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	must(t, err)
	if b.String() != string(want) {
		t.Error("what is printed is not summary.json")
	}
}
