package svg

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	got = strings.ReplaceAll(got, "><", ">\n<") + "\n"
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; go test -update rewrites it):\n%s", path, diff)
	}
}

func parses(t *testing.T, doc string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(doc))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
	}
}

func TestCharts(t *testing.T) {
	nan := math.NaN()
	for name, chart := range map[string]interface{ SVG() string }{
		"plot.svg": Plot{Label: "latency", Title: "one node", X: Axis{Label: "s"}, Y: Axis{Label: "ms", Scale: Log},
			Spans: []Span{{From: 0, To: 1, Name: "warm-up"}}, Series: []Series{
				{Name: "p50", Class: "c1", Points: []Point{{X: 0, Y: 10}, {X: 1, Y: 20}, {X: 3, Y: 15}}},
				{Name: "p99", Class: "c0", Dots: true, Points: []Point{{X: 0, Y: 1, Half: 0.5, Tip: "one"}, {X: 1, Y: nan},
					{X: 2, Y: 100, Name: "hundred"}}}}},
		"bars.svg": Bars{Label: "bars", Y: Axis{Label: "ops/s"}, Groups: []string{"A", "B"}, Series: []BarSeries{
			{Name: "redis", Class: "c0", Values: []Bar{{Value: 10, Half: 2}, {Value: nan}}},
			{Name: "mysql", Class: "c1", Values: []Bar{{Value: 5}, {Value: 7}}}}},
		"graph.svg": Graph{Label: "graph", Nodes: []Node{{Name: "Pune"}, {Name: "Seoul"}, {Name: "client"}},
			Edges: []Edge{{0, 1, 100, "much"}, {1, 2, 1, "little"}, {0, 9, 5, "astray"}, {0, 2, 0, "none"}}},
	} {
		t.Run(name, func(t *testing.T) {
			doc := chart.SVG()
			parses(t, doc)
			golden(t, name, doc)
		})
	}
}

func TestChartsWithoutData(t *testing.T) {
	for _, doc := range []string{
		Plot{}.SVG(), Plot{Series: []Series{{}}}.SVG(), Plot{X: Axis{Scale: Log}, Y: Axis{Scale: Log}}.SVG(),
		Plot{Series: []Series{{Points: []Point{{X: math.NaN(), Y: math.Inf(1)}, {X: 1, Y: 1}}}}}.SVG(),
		Bars{}.SVG(), Graph{}.SVG(), Graph{Nodes: []Node{{}}}.SVG(),
	} {
		parses(t, doc)
		if strings.Contains(doc, "NaN") || strings.Contains(doc, "Inf") {
			t.Errorf("a coordinate is not a number: %s", doc)
		}
	}
}

func TestLinearTicks(t *testing.T) {
	for _, c := range []struct {
		name   string
		axis   Axis
		values []float64
		want   []float64
	}{
		{"from zero", Axis{}, []float64{3, 1876}, []float64{0, 500, 1000, 1500, 2000}},
		{"small", Axis{}, []float64{0.03, 0.07}, []float64{0, 0.02, 0.04, 0.06, 0.08}},
		{"below zero", Axis{}, []float64{-1, 1}, []float64{-1, -0.5, 0, 0.5, 1}},
		{"all zero", Axis{}, []float64{0, 0}, []float64{0, 0.5, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.axis.fit(c.values, 0, 100, 4).ticks
			if diff := cmp.Diff(c.want, got, cmpopts.EquateApprox(1e-9, 1e-12)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, v := range got {
				if v == 0 && math.Signbit(v) {
					t.Error("a tick at minus zero")
				}
			}
		})
	}
}

// If neighbouring floats are farther apart than ticks, the loop must still end.
func TestTicksBeyondWholeFloats(t *testing.T) {
	if n := len(Axis{}.fit([]float64{-1e17, 1e17 + 16}, 0, 100, 4).ticks); n > 12 {
		t.Errorf("%d ticks", n)
	}
}

func TestLogAxis(t *testing.T) {
	r := Axis{Scale: Log}.fit([]float64{1, 10, 1000}, 0, 300, 4)
	if diff := cmp.Diff(r.position(10)-r.position(1), r.position(1000)-r.position(100), cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("decades differ:\n%s", diff)
	}
	if at := r.position(0); at > r.position(1) || math.IsInf(at, 0) {
		t.Errorf("0 is at %g", at)
	}
}

// Any text remains the text of one element.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "plain", `<script>&"'`, "\x00\x1b[0m\xff\xfe", "]]>", "\ufffe"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		doc := Graph{Label: s, Nodes: []Node{{Name: s}, {}}, Edges: []Edge{{0, 1, 1, s}}}.SVG()
		parses(t, doc)
		for _, tag := range []string{"svg", "text", "line", "title"} {
			if n := strings.Count(doc, "<"+tag); n > 2 {
				t.Errorf("%d of <%s", n, tag)
			}
		}
	})
}
