package results

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/database/all"
	"skerry/internal/experiment"
	"skerry/internal/record"
)

const (
	root  = "../../.."
	pages = root + "/docs/results"
)

var folder = Folder{Dir: pages, Root: root}

// templates are those of all pages, by their file's name.
func templates(t *testing.T) map[string][]byte {
	t.Helper()
	names, err := folder.templates()
	if err != nil || len(names) == 0 {
		t.Fatalf("%d templates of pages: %v", len(names), err)
	}
	out := map[string][]byte{}
	for _, path := range names {
		if out[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func load(t *testing.T) Plan {
	t.Helper()
	p, err := LoadPlan(pages + "/plan.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A name in a plan selects exactly one thing.
func TestPlanNamesAreUnique(t *testing.T) {
	step := func(name string) Step { return Step{Name: name, Run: "e.yaml", Keep: []string{"goodput"}} }
	for what, pages := range map[string][]PlanPage{
		"two pages":                        {{Name: "a", Steps: []Step{step("b")}}, {Name: "a", Steps: []Step{step("c")}}},
		"two steps":                        {{Name: "a", Steps: []Step{step("b")}}, {Name: "c", Steps: []Step{step("b")}}},
		"a page and its step":              {{Name: "a", Steps: []Step{step("a")}}},
		"a page and a step of another one": {{Name: "a", Steps: []Step{step("b")}}, {Name: "b", Steps: []Step{step("c")}}},
	} {
		if err := (Plan{Pages: pages}).validate(); err == nil {
			t.Errorf("%s with the same name are accepted", what)
		}
	}
}

// Every experiment of the plan can be run, in full and in its short form.
func TestPlanExperimentsAreValid(t *testing.T) {
	for _, page := range load(t).Pages {
		for _, s := range page.Steps {
			for _, quick := range []bool{false, true} {
				if v := experiment.Validate(root+"/"+s.Run, s.Set, quick, all.Databases()); !v.Valid {
					t.Errorf("%s, quick %v: %+v", s.Name, quick, v.Problems)
				}
			}
		}
	}
}

func TestSelect(t *testing.T) {
	p := load(t)
	for _, tt := range []struct {
		names []string
		want  int
	}{{nil, len(p.Pages)}, {[]string{"all"}, len(p.Pages)}, {[]string{"clouds"}, 1}, {[]string{"mds"}, 1},
		{[]string{"routing", "fhc-resize"}, 2}, {[]string{"hydra-mixed-30", "metadata-lost"}, 2}} {
		if got, err := p.Select(tt.names, false); err != nil || len(got) != tt.want {
			t.Errorf("%v selects %d pages, %v, want %d", tt.names, len(got), err, tt.want)
		}
	}
	if got, err := p.Select([]string{"hydra-mixed-30"}, false); err != nil || len(got) != 1 || len(got[0].Steps) != 1 {
		t.Errorf("a step selects %v, %v", got, err)
	}
	if _, err := p.Select([]string{"cloud"}, false); err == nil {
		t.Error("an unknown name selects steps")
	}
	steps := func(names ...string) (n int) {
		pages, err := p.Select(names, true)
		if err != nil {
			t.Error(err)
		}
		for _, page := range pages {
			n += len(page.Steps)
		}
		return n
	}
	if got := steps("audits", "fhc-options"); got != 2 {
		t.Errorf("%d short forms, want the named one and the one that no other step covers", got)
	}
	if got := steps("metadata-layout-rate"); got != 1 {
		t.Errorf("%d short forms of a named step, want 1", got)
	}
}

// notFigures are the permitted numbers in prose: names of figures, tables, sections and experiments of the documents,
// scales, flavors of machines, and percentiles. Other figures come from data by a call, and settings are code.
var notFigures = regexp.MustCompile(`(Fig\.|[Ff]igures?|[Tt]ables?|[Ss]ections?|[Ee]xperiments?|[Hh]ypothes[ie]s) [0-9.-]+((, | to | and )[0-9.-]+)*|\b[2-5]X\b|95th percentile|95 % confidence|t2\.small|m1\.small`)

var (
	code   = regexp.MustCompile("`[^`]*`")
	linked = regexp.MustCompile(`\]\([^)]*\)`)
)

// The short form of a step keeps the lengths of its experiment, with the step's database.
func TestSettings(t *testing.T) {
	s := Step{Set: []string{"database=mongodb", "workload.records=100000", "stop.time=120s", "stop={time: 1h}", "repetitions=9",
		"workload.threads=1"}}
	if got := s.Settings(false); !slices.Equal(got, s.Set) {
		t.Errorf("in full %q", got)
	}
	if got, want := s.Settings(true), []string{"database=mongodb", "workload.threads=1"}; !slices.Equal(got, want) {
		t.Errorf("in short %q, want %q", got, want)
	}
}

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	phrases = regexp.MustCompile(`\{\{words "([^"]*)"`)
	actions = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
)

// proseOf returns a template without its calls, except the texts of words, and without fenced code.
func proseOf(template []byte) string {
	text := fenced.ReplaceAllString(string(template), "")
	return actions.ReplaceAllString(phrases.ReplaceAllString(text, "$1 {{"), "")
}

// Prose contains no figure that is missing in the data.
func TestProseContainsNoFigures(t *testing.T) {
	for name, template := range templates(t) {
		prose := proseOf(template)
		if name == documents { // figures from data/papers.csv: see TestContradictionsFollowFromPapers
			for _, c := range contradictions {
				prose = strings.Replace(prose, fmt.Sprintf(c.sentence, c.value(documentValues(t))), "", 1)
			}
		}
		for _, hide := range []*regexp.Regexp{code, linked, notFigures} {
			prose = hide.ReplaceAllString(prose, "")
		}
		for line := range strings.Lines(prose) {
			if strings.ContainsAny(line, "0123456789") {
				t.Errorf("%s: a figure that no data has: %s", name, strings.TrimSpace(line))
			}
		}
	}
}

// The pages follow from their templates and data.
func TestPagesFollowFromData(t *testing.T) {
	files, err := folder.RenderFiles()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s does not match its data (%v): run make docs", path, err)
		}
	}
	there, err := filepath.Glob(pages + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pictures, err := filepath.Glob(folder.dataPath("*" + svgExt))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(there, pictures...) {
		if files[path] == nil {
			t.Errorf("%s has no template: run make docs, or remove it", path)
		}
	}
}

// A page that is mostly missing is named instead of its steps; otherwise its steps are named.
func TestMissing(t *testing.T) {
	some := Folder{Dir: t.TempDir(), Root: root}
	if err := folder.CopyTemplates(some); err != nil {
		t.Fatal(err)
	}
	keep := func(steps ...string) {
		t.Helper()
		for _, step := range steps {
			if err := some.SaveTrials(step, []Row{{State: record.TrialOK}}, nil, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"fhc-redis", "routing", "audits"} { // whatever was measured so far
		forget(t, some, name)
	}
	keep("fhc-latency-redis", "fhc-latency-whole", "fhc-links")
	got, err := some.Missing([]string{"fhc-latency-whole-e", "routing-healing", "audit-redis"})
	if want := []string{"fhc-latency-whole-e", "routing", "audits"}; err != nil || !cmp.Equal(got.Names, want) {
		t.Errorf("missing steps %v, %v, want %v", got.Names, err, want)
	}
	last, err := pretended{plan: load(t)}.step("fhc-latency-whole-e")
	if err != nil {
		t.Fatal(err)
	}
	takes, _, err := last.EstimateTime(root, false)
	if err != nil {
		t.Fatal(err)
	}
	if got, err = some.Missing([]string{last.Name}); err != nil || got.Takes != takes {
		t.Errorf("duration of the missing steps is %v, %v, want that of the step, %v", got.Takes, err, takes)
	}
	if measured, all, err := some.Progress("routing"); err != nil || measured != 1 || all < 5 {
		t.Errorf("%d of %d steps are measured, %v", measured, all, err)
	}
	if _, _, err := some.Progress("rooting"); err == nil {
		t.Error("an unknown page has a progress")
	}
}

// forget removes the data of a page's steps.
func forget(t *testing.T, f Folder, name string) {
	t.Helper()
	pages, err := load(t).Select([]string{name}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range pages[0].Steps {
		if err := os.Remove(f.dataPath(s.Name + dataExt)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// A chart that no page uses any more is removed with the next update of the pages.
func TestUnusedPicturesAreRemoved(t *testing.T) {
	some := Folder{Dir: t.TempDir(), Root: root}
	if err := folder.CopyTemplates(some); err != nil {
		t.Fatal(err)
	}
	old := some.dataPath("clouds-99" + svgExt)
	if err := os.WriteFile(old, []byte("<svg/>"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := some.WritePages(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("a chart of an older page was not removed")
	}
	if _, err := os.Stat(filepath.Join(some.Dir, "clouds"+pageExt)); err != nil {
		t.Error(err)
	}
}

// The short forms of all steps together cover every page.
func TestQuickCoversEveryPage(t *testing.T) {
	plan := load(t)
	quick, err := plan.Select([]string{"all"}, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plan.Pages {
		if !slices.ContainsFunc(quick, func(q PlanPage) bool { return q.Name == p.Name }) {
			t.Errorf("reproduce %s --quick would run nothing", p.Name)
		}
	}
}

// Time series of trials are stored for the steps that request them, and have a value at every point.
func TestPointsHaveFigures(t *testing.T) {
	for _, p := range load(t).Pages {
		for _, s := range p.Steps {
			points, err := folder.Points(s.Name)
			if errors.As(err, &notMeasuredError{}) {
				continue
			}
			if err != nil {
				t.Error(err)
			}
			for _, at := range points {
				if len(at.Figures) == 0 {
					t.Errorf("%s: trial %d at %g s: a point without figures", s.Name, at.Trial, at.T)
					break
				}
			}
		}
	}
}

// A run that ends before its first trial keeps earlier data, and writes no file.
func TestSaveTrialsKeepsMeasuredData(t *testing.T) {
	f := Folder{Dir: t.TempDir()}
	measured := []Row{{Trial: 1, State: record.TrialOK, Figures: map[string]float64{"goodput": 7}}}
	none := [][]Row{nil, {{Trial: 1, State: record.TrialFailed}}}
	for _, rows := range none {
		if err := f.SaveTrials("step", rows, nil, true); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(f.dataPath("step" + dataExt)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%d rows, nothing measured: %v", len(rows), err)
		}
	}
	if err := f.SaveTrials("step", measured, nil, true); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(f.dataPath("step" + dataExt))
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range none {
		if err := f.SaveTrials("step", rows, nil, true); err != nil {
			t.Fatal(err)
		}
		if after, err := os.ReadFile(f.dataPath("step" + dataExt)); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%d rows, nothing measured: %q, %v", len(rows), after, err)
		}
	}
}

// A run that was interrupted replaces no more than it measured; one that ended does, however small it is.
func TestSaveTrialsKeepsLargerRun(t *testing.T) {
	f := Folder{Dir: t.TempDir()}
	trials := func(n int) (rows []Row) {
		for i := range n {
			rows = append(rows, Row{Trial: i + 1, State: record.TrialOK, Figures: map[string]float64{"goodput": 7}})
		}
		return append(rows, Row{Trial: n + 1, State: record.TrialFailed})
	}
	for _, tt := range []struct {
		n     int
		whole bool
		want  error
		stay  int
	}{
		{3, true, nil, 3},
		{2, false, ErrFewer, 3},
		{3, false, nil, 3},
		{4, false, nil, 4},
		{1, true, nil, 1},
	} {
		if err := f.SaveTrials("step", trials(tt.n), nil, tt.whole); !errors.Is(err, tt.want) {
			t.Errorf("%d trials, whole %v: %v, want %v", tt.n, tt.whole, err, tt.want)
		}
		rows, err := f.Rows("step")
		if got := measuredTrials(rows); err != nil || got != tt.stay {
			t.Errorf("%d trials, complete %v: %d stored, %v; want %d", tt.n, tt.whole, got, err, tt.stay)
		}
	}
}

// The time of a step does not include the hours between an interrupted run and its continuation.
func TestMeasuredTimeIgnoresInterruptions(t *testing.T) {
	begun := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	var rows []Row
	for _, after := range []time.Duration{0, time.Minute, 2 * time.Minute, 8 * time.Hour, 8*time.Hour + time.Minute} {
		rows = append(rows, Row{Started: begun.Add(after)})
	}
	if got := sumGaps(rows, 2*time.Minute); got != 5*time.Minute {
		t.Errorf("five trials of a minute took %v, want 5m", got)
	}
}
