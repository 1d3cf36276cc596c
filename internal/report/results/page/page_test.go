package page

import (
	"errors"
	"strings"
	"testing"

	"skerry/internal/report/results/data"
)

// made is a step's trials: two workloads at two scales, three times each.
type made struct{}

func (made) Rows(step string) (rows []data.Row, err error) {
	if step != "made" {
		return nil, errors.New("no such step")
	}
	for i, at := range []struct {
		workload, scale string
		goodput         float64
	}{{"a", "1", 100}, {"a", "0.2", 500}, {"b", "1", 200}, {"b", "0.2", 900}} {
		for n := range 3 {
			r := data.Row{
				Trial: 3*i + n, State: "ok", Verdict: "valid", Attempts: 1, Parameters: map[string]string{"workload": at.workload, "scale": at.scale},
				Figures: map[string]float64{"goodput": at.goodput + float64(n-1), "read.p99": 0.0123},
			}
			if i == 1 && n == 2 {
				r.Verdict, r.Bound, r.Figures["goodput"] = "suspect", "machine", 1
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

func (made) Papers(item string) ([]Value, error) {
	return []Value{{Item: item, Series: "a", X: "1", Y: 1}, {Item: item, Series: "a", X: "0.2", Y: 4.5}}, nil
}

func TestFill(t *testing.T) {
	text := `# A page
Of it <!-- trials made -->?<!-- end -->; A at X had <!-- figure made of=goodput where=workload=a,scale=1 --><!-- end --> a second.
<!-- table made rows=workload,scale columns=goodput,goodput/scale=1,read.p99:ms -->
old
<!-- end -->
` + "```\n<!-- trials other -->\n```\n" + `
`
	p, err := Fill("x", []byte(text), made{})
	if err != nil {
		t.Fatal(err)
	}
	want := `# A page
Of it <!-- trials made -->11 of 12 trials are valid, 1 suspect<!-- end -->; A at X had <!-- figure made of=goodput where=workload=a,scale=1 -->100 ± 2<!-- end --> a second.
<!-- table made rows=workload,scale columns=goodput,goodput/scale=1,read.p99:ms -->

| workload | scale | goodput/s | goodput, multiple of scale 1 | read.p99 ms | n | notes |
| --- | --- | --- | --- | --- | --- | --- |
| a | 0.2 | 500 ± 6 | 5.00 ± 0.12 | 12.3 ± 0 | 2 | 1 left out, bound by the machine |
| a | 1 | 100 ± 2 | 1.00 | 12.3 ± 0 | 3 |  |
| b | 0.2 | 900 ± 2 | 4.50 ± 0.053 | 12.3 ± 0 | 3 |  |
| b | 1 | 200 ± 2 | 1.00 | 12.3 ± 0 | 3 |  |

<!-- end -->
` + "```\n<!-- trials other -->\n```\n" + `
`
	if string(p.Text) != want {
		t.Errorf("filled in:\n%s\nwant:\n%s", p.Text, want)
	}
	if again, err := Fill("x", p.Text, made{}); err != nil || string(again.Text) != want {
		t.Errorf("filled in twice it is another page (%v)", err)
	}
}

func TestPicture(t *testing.T) {
	p, err := Fill("x", []byte("<!-- picture made x=scale y=goodput/scale=1 by=workload paper=fhc-5 -->\n<!-- end -->"), made{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(p.Text), "](data/x-1.svg)") {
		t.Errorf("no picture on the page: %s", p.Text)
	}
	svg := p.Pictures["x-1.svg"]
	for _, want := range []string{"<svg", "<style>", "a, document", "paper", "multiple of scale 1"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture has no %q", want)
		}
	}
}

func TestFillRefuses(t *testing.T) {
	for name, marker := range map[string]string{
		"no end":               "<!-- trials made -->",
		"no step":              "<!-- trials where=a=1 --><!-- end -->",
		"an unknown step":      "<!-- trials other --><!-- end -->",
		"an unknown option":    "<!-- trials made what=1 --><!-- end -->",
		"no such trial":        "<!-- trials made where=workload=z --><!-- end -->",
		"no such figure":       "<!-- figure made of=speed --><!-- end -->",
		"no such parameter":    "<!-- table made rows=colour columns=goodput --><!-- end -->",
		"a table of nothing":   "<!-- table made rows=scale --><!-- end -->",
		"no such unit":         "<!-- table made rows=scale columns=goodput:mph --><!-- end -->",
		"no such cell":         "<!-- table made rows=scale columns=goodput/scale=7 --><!-- end -->",
		"a picture over names": "<!-- picture made x=workload y=goodput --><!-- end -->",
	} {
		if _, err := Fill("x", []byte(marker), made{}); err == nil {
			t.Errorf("%s: filled in", name)
		}
	}
}

func TestReadPapers(t *testing.T) {
	if got, err := ReadPapers(strings.NewReader("item,series,x,y,how\nfhc-5,a,0.2,4.5,measured on the picture\n")); err != nil || len(got) != 1 || got[0].Y != 4.5 {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "item,x\n", "item,series,x,y,how\nfhc-5,a,,4,printed\n", "item,series,x,y,how\nfhc-5,a,1,much,printed\n", "item,series,x,y,how\nfhc-5,a,1,4,\n"} {
		if got, err := ReadPapers(strings.NewReader(text)); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}
