package results

import (
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/report/svg"
)

// made is a step's trials: two workloads at two scales, three times each.
type made struct{}

func (made) Rows(step string) (rows []Row, err error) {
	switch step {
	case "made":
	case "bare": // no valid trial
		return []Row{{Trial: 1, State: "ok", Verdict: "suspect"}}, nil
	case "later":
		return nil, notMeasuredError{Step: "later"}
	default:
		return nil, errors.New("no such step")
	}
	for i, at := range []struct {
		workload, scale string
		goodput         float64
	}{{"a", "1", 100}, {"a", "0.2", 500}, {"b", "1", 200}, {"b", "0.2", 900}} {
		for n := range 3 {
			r := Row{
				Trial: 3*i + n, State: "ok", Verdict: "valid", Attempts: 1, Parameters: map[string]string{"workload": at.workload, "scale": at.scale},
				Figures: map[string]float64{"goodput": at.goodput + float64(n-1), "read.p99": 0.0123, "pair.Oslo~Rome": 100,
					"pair.Oslo~Bonn": 50, "change.Oslo.leave.complete": 3, "change.Rome.leave.complete": 4},
			}
			if i == 1 && n == 2 {
				r.Verdict, r.Bound, r.Figures["goodput"] = "suspect", "machine", 1
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

func (made) Points(step string) ([]Point, error) {
	if step == "later" {
		return nil, notMeasuredError{Step: "later"}
	}
	var out []Point
	for i := range 10 {
		p := Point{Trial: i / 5, T: float64(10 * (i % 5)), Parameters: map[string]string{"scale": []string{"0.2", "1"}[i/5]},
			Figures: map[string]float64{"goodput": float64(i)}}
		if p.T == 20 {
			p.Figures = nil
		}
		out = append(out, p)
	}
	return out, nil
}

func (made) Missing(steps []string) (MissingSteps, error) {
	return MissingSteps{Names: steps, Takes: 90 * time.Minute}, nil
}

func (made) Progress(string) (int, int, error) { return 2, 3, nil }

func (made) Papers(item string) ([]DocumentValue, error) {
	switch item {
	case "labels":
		return []DocumentValue{{Series: "a b", X: "L", Y: 3}, {Series: "a b", X: "M", Y: 7}, {Series: "a b", X: "N", Y: 9}}, nil
	case "kinds":
		return []DocumentValue{{Series: "L", X: "b"}, {Series: "M", X: "a"}, {Series: "N", X: "b"}}, nil
	}
	if item == "named" {
		return []DocumentValue{{Item: item, Series: "a b", X: "A", Y: 7}, {Item: item, Series: "a b", X: "B", Y: 8.5}}, nil
	}
	if item == "clouds" {
		return []DocumentValue{{Series: "AWS", X: "B", Y: 58.13}, {Series: "AWS SD", X: "B", Y: 5.89},
			{Series: "OpenStack", X: "B", Y: 71.83}, {Series: "OpenStack SD", X: "B", Y: 7.08}, {Series: "g", X: "B", Y: 0.57}}, nil
	}
	return []DocumentValue{{Item: item, Series: "a", X: "1", Y: 1}, {Item: item, Series: "a", X: "0.2", Y: 4.5}}, nil
}

func TestFill(t *testing.T) {
	text := "# A page\nOf it {{trials `made`}}; A at X had {{figure `made` `of=goodput` `where=workload=a,scale=1`}} a second.\n" +
		"{{table `made` `rows=workload,scale` `columns=goodput,goodput/scale=1,read.p99:ms`}}\n" +
		"```\n{{`{{trials}}`}}\n\n\n```\n"
	p, err := fillPage("x", []byte(text), made{})
	if err != nil {
		t.Fatal(err)
	}
	want := `# A page
Of it 11 of 12 trials are valid, 1 suspect; A at X had 100 ± 2 a second.

| workload | scale | goodput/s | goodput, multiple of scale 1 | read.p99 ms | n | notes |
| --- | --- | --- | --- | --- | --- | --- |
| a | 0.2 | 500 ± 6 | 5.00 ± 0.12 | 12.3 ± 0 | 2 | 1 excluded, limited by the machine |
| a | 1 | 100 ± 2 | 1.00 | 12.3 ± 0 | 3 |  |
| b | 0.2 | 900 ± 2 | 4.50 ± 0.053 | 12.3 ± 0 | 3 |  |
| b | 1 | 200 ± 2 | 1.00 | 12.3 ± 0 | 3 |  |

` + "```\n{{trials}}\n\n\n```\n"
	if diff := cmp.Diff(want, string(p.Text)); diff != "" {
		t.Error(diff)
	}
}

// By hand: 499.5 and 100 with SDs of 0.707 and 1, of two and three values: g = -399.5/0.866; pooled
// 0.913 and J(3) = 0.7236. One deal of ten sets
// them so far apart. 900 and 200 with SDs of 1, of three: J(4) = 0.7979, two deals of twenty.
func TestVersus(t *testing.T) {
	for call, want := range map[string]string{
		"{{versus `made` `of=goodput` `rows=workload` `by=scale` " +
			"`between=0.2,1`}}\n": `| workload | goodput/s, 0.2 | goodput/s, 1 | g | g, corrected | p |
| --- | --- | --- | --- | --- | --- |
| a | 500 ± 6 | 100 ± 2 | -461.30 | -316.67 | 0.100 |
| b | 900 ± 2 | 200 ± 2 | -700.00 | -558.52 | 0.100 |
`,
		"{{versus `made` `of=goodput` `rows=workload` `by=scale` `between=1,none` " +
			"`paper=clouds`}}\n": `| workload | goodput/s, 1 | goodput/s, none | g | g, corrected | p | published g, recomputed |
| --- | --- | --- | --- | --- | --- | --- |
| a | 100 ± 2 | – | – | – | – | – |
| b | 200 ± 2 | – | – | – | – | 2.10 |
`,
	} {
		p, err := fillPage("x", []byte(call), made{})
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, string(p.Text)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestPicture(t *testing.T) {
	p, err := fillPage("x", []byte("{{picture `made` `x=scale` `y=goodput/scale=1` `by=workload` `paper=fhc-5`}}"), made{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(p.Text), "](data/x-1.svg)") {
		t.Errorf("no chart on the page: %s", p.Text)
	}
	svg := p.Pictures["x-1.svg"]
	for _, want := range []string{"<svg", "<style>", "a, published", "paper", "multiple of scale 1"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the chart lacks %q", want)
		}
	}
}

func TestFillRejects(t *testing.T) {
	for name, call := range map[string]string{
		"a comment":            "<!-- trials made -->",
		"no function":          "{{trails `made`}}",
		"within words":         "- one {{table `made` `rows=scale` `columns=goodput`}}",
		"half of one":          "{{trials `made`",
		"no step":              "{{trials}}",
		"an option twice":      "{{trials `made` `where=a=1` `where=a=1`}}",
		"a row without a name": "{{range rows `STEP | NAME` `made`}}{{.STEP}}{{end}}",
		"no such name":         "{{range rows `STEP` `made`}}{{.NAME}}{{end}}",
		"an unknown step":      "{{trials `other`}}",
		"an unknown option":    "{{trials `made` `what=1`}}",
		"no bounds":            "{{claim `made` `of=goodput` `least=1`}}",
		"an unknown parameter": "{{trials `made` `where=colour=z`}}",
		"no such value":        "{{printed `named` `series=a` `x=A`}}",
		"sides of nothing":     "{{versus `made` `of=goodput` `rows=workload` `by=colour` `between=1,2`}}",
		"one side":             "{{versus `made` `of=goodput` `rows=workload` `by=scale` `between=1`}}",
		"no such parameter":    "{{table `made` `rows=colour` `columns=goodput`}}",
		"a table of nothing":   "{{table `made` `rows=scale`}}",
		"no such unit":         "{{table `made` `rows=scale` `columns=goodput:mph`}}",
	} {
		if _, err := fillPage("x", []byte(call), made{}); err == nil {
			t.Errorf("%s: filled in", name)
		}
	}
}

// filled is a page of a call alone: function, step and options with _ for a space.
func filled(t *testing.T, call string) (text string, pictures map[string]string) {
	t.Helper()
	kind, arguments, _ := strings.Cut(call, " ")
	p, err := fillPage("x", []byte("{{"+kind+" `"+strings.NewReplacer(" ", "` `", "_", " ").Replace(arguments)+"`}}"), made{})
	if err != nil {
		t.Fatalf("%s: %v", call, err)
	}
	return strings.TrimSpace(string(p.Text)), p.Pictures
}

func TestWhere(t *testing.T) {
	rows := []Row{{Trial: 1, Parameters: map[string]string{"volumes": "none"}},
		{Trial: 2, Parameters: map[string]string{"volumes": "kind=loop size=8GiB"}},
		{Trial: 3, Parameters: map[string]string{"volumes": "local_one"}}}
	for value, want := range map[string]int{"none": 1, "kind=loop size=8GiB": 2, "local_one": 3} {
		w := arguments{options: map[string]string{"where": "volumes=" + value}}
		if got, err := w.filterRows(rows); err != nil || len(got) != 1 || got[0].Trial != want {
			t.Errorf("%s: %+v, %v", value, got, err)
		}
	}
}

func TestFigureAndClaim(t *testing.T) {
	for call, want := range map[string]string{
		"figure made of=goodput/scale=1 where=workload=b,scale=0.2":               "4.50 ± 0.053",
		"figure made of=goodput where=workload=z":                                 "",
		"figure later of=goodput":                                                 "",
		"trials later":                                                            "",
		"claim made of=goodput where=workload=b,scale=1 least=190 most=210":       "**confirmed**: 200 ± 2",
		"claim made of=goodput where=workload=b,scale=1 least=100 most=110":       "**refuted**: 200 ± 2",
		"claim made of=goodput where=workload=b,scale=1 least=199 most=210":       "inconclusive: 200 ± 2",
		"claim made of=goodput/scale=1 where=workload=b,scale=0.2 least=4 most=5": "**confirmed**: 4.50 ± 0.053",
		"claim later of=goodput least=1 most=2":                                   "",
		"progress a-page":                                                         "2 of 3",
		"printed named series=a_b x=B":                                            "8.5",
	} {
		if got, _ := filled(t, call); got != want {
			t.Errorf("%s: %q, want %q", call, got, want)
		}
	}
}

func TestBlocks(t *testing.T) {
	for call, want := range map[string]string{
		"table made rows=workload columns=goodput where=scale=1 paper=named":   "| a | 100 ± 2 | 7 | 3 |  |",
		"table made rows=workload columns=goodput where=scale=1 sort=read.p99": "| a | 100 ± 2 | 3 |  |\n| b |",
		"paper named":                  "| A | 7 |\n| B | 8.5 |",
		"effects clouds":               "| B | 58.13 ± 5.89 | 71.83 ± 7.08 | 0.57 | **2.10** | 1.90 |",
		"graph made":                   "![traffic between data nodes: 50 to 100 B per operation",
		"over made y=goodput by=scale": "](data/x-1.svg)",
		"over made y=goodput axis=log": "](data/x-1.svg)",
		"picture made x=workload y=goodput where=scale=1 paper=named": "pale bars",
	} {
		got, pictures := filled(t, call)
		if !strings.Contains(got, want) {
			t.Errorf("%s:\n%s\nhas no %q", call, got, want)
		}
		if n := strings.Count(got, "!["); n != len(pictures) {
			t.Errorf("%s: %d pictures", call, len(pictures))
		}
	}
}

// A standalone picture defines the fill of its shapes, which would otherwise be black.
func TestPictureShapesAreFilled(t *testing.T) {
	_, pictures := filled(t, "picture made x=workload y=goodput by=scale paper=named")
	for _, drawn := range pictures {
		shapes := regexp.MustCompile(`<rect class="(\w+)`).FindAllStringSubmatch(drawn, -1)
		if len(shapes) == 0 {
			t.Error("the chart has no bars")
		}
		for _, shape := range shapes {
			if !regexp.MustCompile(`\.` + shape[1] + `[,.\w]*\{fill:`).MatchString(pictureStyle) {
				t.Errorf("no style fills .%s", shape[1])
			}
		}
	}
}

// A table of values is written out by range.
func TestRows(t *testing.T) {
	text := "| of | trials |\n|---|---|\n{{- range rows `STEP | NAME`\n  `made | Made`\n  `bare | Bare`}}\n| {{.NAME}} | {{trials " +
		".STEP}} |\n{{- end}}\n\nAfter.\n"
	p, err := fillPage("x", []byte(text), made{})
	if err != nil {
		t.Fatal(err)
	}
	want := "| of | trials |\n|---|---|\n| Made | 11 of 12 trials are valid, 1 suspect |\n| Bare | 0 of 1 trials are valid, 1 " +
		"suspect |\n\nAfter.\n"
	if diff := cmp.Diff(want, string(p.Text)); diff != "" {
		t.Error(diff)
	}
}

func TestReadPapers(t *testing.T) {
	if got, err := readPapers(strings.NewReader("item,series,x,y,how\nfhc-5,a,0.2,4.5,measured on the picture\n")); err != nil ||
		len(got) != 1 || got[0].Y != 4.5 {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "item,x\n", "item,series,x,y,how\nfhc-5,a,,4,printed\n",
		"item,series,x,y,how\nfhc-5,a,1,much,printed\n", "item,series,x,y,how\nfhc-5,a,1,4,\n"} {
		if got, err := readPapers(strings.NewReader(text)); err == nil {
			t.Errorf("%q was parsed as %v", text, got)
		}
	}
}

// A figure that no trial has, such as a censored recovery or one side of a ratio, is shown as missing and is no error.
func TestFillPartialData(t *testing.T) {
	for call, want := range map[string]string{
		"{{figure `made` `of=events.lost.recover`}}":              "no valid trial",
		"{{table `made` `each=never` `rows=never` `columns=x`}}":  "",
		"{{table `made` `rows=scale` `columns=goodput/scale=7`}}": "| 0.2 | – | 5 |",
	} {
		if p, err := fillPage("x", []byte(call), made{}); err != nil || !strings.Contains(string(p.Text), want) {
			t.Errorf("%s is %s, %v, want %s", call, p.Text, err, want)
		}
	}
}

// The values of a document are compared with ours by rank and rank correlation.
func TestRanks(t *testing.T) {
	text := "{{ranks `made` `of=goodput` `by=workload` `pairs=scale=1~a b` `paper=labels` `as=kinds`}}"
	p, err := fillPage("x", []byte(text), made{})
	if err != nil {
		t.Fatal(err)
	}
	want := `| label | setting | a b | rank | scale=1 goodput/s | rank |
| --- | --- | --- | --- | --- | --- |
| L | b | 3 | 1 | 200 ± 2 | 2.5 |
| M | a | 7 | 2 | 100 ± 2 | 1 |
| N | b | 9 | 3 | 200 ± 2 | 2.5 |
| rank correlation |  |  |  |  | 0.00 |
`
	if !strings.Contains(string(p.Text), want) {
		t.Errorf("got\n%s\nwant\n%s", p.Text, want)
	}
}

// Graphs are in one row.
func TestGraphs(t *testing.T) {
	p, err := fillPage("x", []byte("{{graph `made` `by=workload` `where=scale=1`}}"), made{})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(p.Text); len(p.Pictures) != 2 || !strings.Contains(text, "| a | b |") || !strings.Contains(text, "](data/x-2.svg) |") {
		t.Errorf("%d pictures in\n%s", len(p.Pictures), text)
	}
}

// Figures of nodes become separate rows.
func TestSplitRows(t *testing.T) {
	p, err := fillPage("x", []byte("{{table `made` `each=change` `rows=change,scale` `columns=leave.complete:s` `where=workload=a`}}"), made{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| Oslo | 0.2 | 3.00 ± 0 | 2 |", "| Rome | 1 | 4.00 ± 0 | 3 |  |"} {
		if !strings.Contains(string(p.Text), want) {
			t.Errorf("%q is missing in\n%s", want, p.Text)
		}
	}
}

// A line from before an outage to after it would say that there was none.
func TestOverTimeSkipsEmptySeries(t *testing.T) {
	_, pictures := filled(t, "over made y=goodput by=scale")
	for _, drawn := range pictures {
		lines := regexp.MustCompile(`<path class="line [^"]*" d="([^"]*)"`).FindAllStringSubmatch(drawn, -1)
		if len(lines) != 2 {
			t.Errorf("%d lines", len(lines))
		}
		for _, line := range lines {
			if n := strings.Count(line[1], "M"); n != 2 {
				t.Errorf("%d parts: %s", n, line[1])
			}
		}
	}
}

func TestDistribution(t *testing.T) {
	points := distribute([]svg.Point{{X: 0, Y: 5}, {X: 1, Y: 2}, {X: 1.5, Y: math.NaN()}, {X: 2, Y: 9}, {X: 3, Y: 2}})
	want := []svg.Point{{X: 25, Y: 2}, {X: 50, Y: 2}, {X: 75, Y: 5}, {X: 100, Y: 9}}
	if diff := cmp.Diff(want, points); diff != "" {
		t.Error(diff)
	}
}

// A measured figure, one of a step without data, and one without matching trials.
const (
	there = "{{figure `made` `of=goodput` `where=workload=a,scale=1`}}"
	yet   = "{{figure `later` `of=goodput`}}"
	never = "{{figure `made` `of=goodput` `where=workload=z`}}"
)

// call is a call as an argument of another one.
func call(action string) string { return strings.Trim(action, "{}") }

// Content without measured figures is omitted, with its headings and introductions.
func TestOmitMissing(t *testing.T) {
	for name, tt := range map[string]struct{ template, want string }{
		"paragraphs without a figure": {
			"First " + there + ".\n\nSecond\n" + yet + ".\n\nThird " + there + ", " + yet + ".\n",
			"First 100 ± 2.\n\nThird 100 ± 2, not measured yet.\n",
		},
		"words without a figure": {
			"It is near{{words `: %s a second` (" + call(there) + ")}}.\nIt is far{{words `: %s` (" + call(yet) + ")}}.\n",
			"It is near: 100 ± 2 a second.\nIt is far.\n",
		},
		"rows": {
			"| a | b |\n|---|---|\n| c | " + yet + " |\n| d | " + there + " |\n| e | " + never + " |\n| f | g |\n",
			"| a | b |\n|---|---|\n| d | 100 ± 2 |\n| f | g |\n",
		},
		"rows in part": {
			"| a | b |\n|---|---|\n| " + there + " | " + yet + " |\n",
			"| a | b |\n|---|---|\n| 100 ± 2 | – |\n",
		},
		"whole tables": {
			"Before.\n\n| a | b |\n|---|---|\n| c | " + yet + " |\n\nAfter.\n",
			"Before.\n\nAfter.\n",
		},
		"items, with all their lines": {
			"- one\n  " + yet + "\n- two " + there + "\n  goes on\n1. three " + never + "\n",
			"- two 100 ± 2\n  goes on\n",
		},
		"lead-ins": {
			"Ours:\n\n{{table `later` `rows=scale` `columns=goodput`}}\n\nTheirs,\nand others:\n\n{{paper `named`}}\n\nA list:\n\n- " + yet +
				"\n\nThat was it.\n",
			"Theirs,\nand others:\n\n| document | a b |\n| --- | --- |\n| A | 7 |\n| B | 8.5 |\n\nThat was it.\n",
		},
		"sections": {
			"# Page\n\nText.\n\n## One\n\nOne's text.\n\n### In one\n\n" + yet + "\n\n{{paper `named`}}\n\n## Two\n\n### In two\n\nGone " +
				yet + "\n\n### More of two\n\nIs " + there + ".\n\n## Three\n\nNo figures.\n",
			"# Page\n\nText.\n\n## Two\n\n### More of two\n\nIs 100 ± 2.\n\n## Three\n\nNo figures.\n",
		},
		"a page's own heading stays": {
			"# Page\n\n" + yet + "\n",
			"# Page\n",
		},
	} {
		p, err := fillPage("x", []byte(tt.template), made{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.want, string(p.Text)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A section shows the command that measures its missing steps, and nothing if none is missing.
func TestWaitingNote(t *testing.T) {
	how := " This command measures them on an otherwise idle machine in at most 90 minutes:\n\n```\nskerry reproduce "
	for name, tt := range map[string]struct{ template, note string }{
		"no figures": {"# Page\n\nWords.\n\n{{waiting `parts`}}\n\n## One\n\n" + yet + "\n\n" + never + "\n",
			"None of the 2 parts is measured yet." + how + "later made\n```\n"},
		"some figures": {"## Page\n\n- " + yet + "\n- " + there + "\n\n{{waiting `findings here`}}\n",
			"1 of the 2 findings here are not measured yet and are omitted." + how + "later\n```\n"},
		"a missing figure": {"## Page\n\n- " + yet + there + "\n\n{{waiting `findings`}}\n",
			"Some figures of the findings are not measured yet." + how + "later\n```\n"},
		"words remain": {"## Page\n\n- One{{words `%s` (" + call(yet) + ")}}.\n\n{{waiting `findings`}}\n",
			"Some figures of the findings are not measured yet." + how + "later\n```\n"},
		"another section lacks it": {"## Page\n\nIs " + there + ".\n\n{{waiting `parts`}}\n\n## Other\n\n" + yet + "\n", ""},
		"all is there":             {"# Page\n\n{{waiting `parts`}}\n\nIs " + there + ".\n", ""},
	} {
		p, err := fillPage("x", []byte(tt.template), made{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if text := string(p.Text); !strings.Contains(text, tt.note) || tt.note == "" && strings.Contains(text, "reproduce") {
			t.Errorf("%s:\n%s\nwant\n%s", name, text, tt.note)
		}
	}
}
