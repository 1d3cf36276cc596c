// Package page fills in what of a page of results follows from data:
//
//	<!-- table STEP rows=workload,scale columns=goodput,goodput/scale=1,read.p99:ms where=workload=a -->
//	...whatever stands here is replaced...
//	<!-- end -->
//
// Each marker names a step of the plan or an item of the documents' values first:
//
//	table, picture, graph, over,
//	ranks                         of a step's trials, a block of their own; with each=PREFIX a row for
//	                              each NAME of their figures PREFIX.NAME.FIGURE
//	figure, claim, trials         of a step's trials, within a sentence
//	output                        what a bench command printed
//	paper, effects                a document's table as it is, and its effect sizes recomputed
//	printed, fact                 a document's value, and what follows from its values, within a sentence
//
// Means are over the valid trials of a cell. What was not measured yet is said in its place.
package page

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"skerry/internal/report/results/data"
)

// NotYet is the error of a step that is in the plan and was not measured yet.
type NotYet struct {
	// Page of the step, as skerry reproduce takes it.
	Page string
}

func (n NotYet) Error() string { return "not measured yet" }

// Source reads what pages follow from.
type Source interface {
	// Rows are the trials of a step, Points what they did over time. The error may be NotYet.
	Rows(step string) ([]data.Row, error)
	Points(step string) ([]data.Point, error)
	// Output is what the bench command of a step printed. The error may be NotYet.
	Output(step string) (string, error)
	// Papers are the values of a figure or table of a document.
	Papers(item string) ([]Value, error)
	// Fact follows from the documents' values.
	Fact(name string) (string, error)
}

// Page is a page filled in.
type Page struct {
	Text []byte
	// Pictures are SVG documents by their file's name.
	Pictures map[string]string
}

const kinds = `table|ranks|picture|graph|over|figure|claim|trials|output|paper|effects|printed|fact`

var (
	block = regexp.MustCompile(`(?s)<!-- (` + kinds + `) ([^>]*?) -->(.*?)<!-- end -->`)
	begin = regexp.MustCompile(`<!-- (?:` + kinds + `) `)
)

// fence begins and ends what a page quotes: markers in there are examples.
var fence = []byte("\n```")

// Fill fills in a page. name begins the names of its pictures.
func Fill(name string, text []byte, from Source) (Page, error) {
	p := Page{Pictures: map[string]string{}}
	var err error
	p.Text, err = Prose(text, func(part []byte) ([]byte, error) { return p.fill(name, part, from) })
	if err != nil {
		return p, fmt.Errorf("page %s: %w", name, err)
	}
	return p, nil
}

// Prose changes all of a page but what it quotes. What a marker has filled in is the marker's, with
// the fences in it.
func Prose(text []byte, change func([]byte) ([]byte, error)) ([]byte, error) {
	var out []byte
	for len(text) > 0 {
		quoted := next(text)
		part, err := change(text[:quoted])
		if err != nil {
			return nil, err
		}
		out, text = append(out, part...), text[quoted:]
		if len(text) == 0 {
			break
		}
		end := bytes.Index(text[len(fence):], fence)
		if end < 0 {
			return append(out, text...), nil
		}
		end += 2 * len(fence)
		out, text = append(out, text[:end]...), text[end:]
	}
	return out, nil
}

// next is where the first fence outside of markers begins, or the text's end.
func next(text []byte) int {
	blocks := block.FindAllIndex(text, -1)
	for from := 0; ; {
		i := bytes.Index(text[from:], fence)
		if i < 0 {
			return len(text)
		}
		at := from + i
		inside := slices.IndexFunc(blocks, func(b []int) bool { return b[0] < at && at < b[1] })
		if inside < 0 {
			return at
		}
		from = blocks[inside][1]
	}
}

func (p *Page) fill(name string, text []byte, from Source) (filled []byte, err error) {
	if begun, whole := len(begin.FindAll(text, -1)), len(block.FindAll(text, -1)); begun != whole {
		return nil, fmt.Errorf("%d parts begin, and %d of them end with <!-- end -->", begun, whole)
	}
	filled = block.ReplaceAllFunc(text, func(found []byte) []byte {
		m := block.FindSubmatch(found)
		w, wrong := parse(string(m[2]))
		var content string
		if wrong == nil {
			content, wrong = p.content(string(m[1]), name, w, from)
		}
		if wrong != nil && err == nil {
			err = fmt.Errorf("<!-- %s %s -->: %w", m[1], m[2], wrong)
		}
		head, _, _ := bytes.Cut(found, []byte("-->"))
		return fmt.Appendf(nil, "%s-->%s<!-- end -->", head, content)
	})
	return filled, err
}

// content is what stands in a marker's place.
func (p *Page) content(kind, name string, w words, from Source) (string, error) {
	switch kind {
	case "printed":
		return printed(w, from)
	case "fact":
		text, err := from.Fact(w.step)
		return text, errors.Join(err, w.only())
	case "paper", "effects":
		text, err := document(kind, w, from)
		return "\n\n" + text + "\n", err
	case "output":
		text, err := from.Output(w.step)
		if yet := (NotYet{}); errors.As(err, &yet) {
			return yet.block(), w.only()
		}
		return "\n\n```\n" + strings.TrimRight(text, "\n") + "\n```\n\n", errors.Join(err, w.only())
	}
	text, err := p.measured(kind, name, w, from)
	if yet := (NotYet{}); errors.As(err, &yet) {
		if slices.Contains([]string{"figure", "claim", "trials"}, kind) {
			return yet.Error(), nil
		}
		return yet.block(), nil
	}
	return text, err
}

func (n NotYet) block() string {
	return fmt.Sprintf("\n\nNot measured yet: `skerry reproduce %s` fills it in.\n\n", n.Page)
}

// measured is what follows from a step's trials.
func (p *Page) measured(kind, name string, w words, from Source) (string, error) {
	if kind == "over" {
		points, err := from.Points(w.step)
		if err != nil {
			return "", err
		}
		svg, about, err := over(points, w)
		return p.add(name, svg, about, err)
	}
	rows, missing := from.Rows(w.step)
	var values []Value
	if item := w.options["paper"]; item != "" {
		var err error
		if values, err = from.Papers(item); err != nil {
			return "", err
		}
		values = w.series(values)
	}
	if missing != nil && !(errors.As(missing, new(NotYet)) && len(values) > 0) {
		return "", missing
	}
	if kind == "ranks" {
		as, err := from.Papers(w.options["as"])
		if err != nil {
			return "", err
		}
		text, err := ranks(rows, values, as, w)
		return "\n\n" + text + "\n" + beside(missing), err
	}
	if kind == "figure" || kind == "claim" {
		return sentence(kind, rows, w)
	}
	rows, err := w.filter(rows)
	if err != nil && missing == nil {
		return "", err
	}
	if rows = each(rows, w.options["each"]); len(rows) == 0 && missing == nil {
		return "", NotYet{Page: w.step} // no trial has come so far
	}
	switch kind {
	case "trials":
		return counts(rows), w.only()
	case "table":
		text, err := table(rows, values, w)
		return "\n\n" + text + "\n" + beside(missing), err
	case "graph":
		return p.graphs(name, rows, w)
	}
	svg, about, err := picture(rows, values, w)
	text, err := p.add(name, svg, about, err)
	return text + beside(missing), err
}

// beside says below a document's values that there are none of ours yet.
func beside(missing error) string {
	if yet := (NotYet{}); errors.As(missing, &yet) {
		return strings.TrimLeft(yet.block(), "\n")
	}
	return ""
}

// add keeps a picture that could be drawn, and returns what shows it.
func (p *Page) add(name, svg, about string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	file := fmt.Sprintf("%s-%d.svg", name, len(p.Pictures)+1)
	p.Pictures[file] = svg
	return fmt.Sprintf("\n\n![%s](data/%s)\n\n", about, file), nil
}

// counts says how many trials there were, and what they were worth.
func counts(rows []data.Row) string {
	valid, suspect, failed := 0, 0, 0
	for _, r := range rows {
		switch {
		case r.Valid():
			valid++
		case r.State == "ok":
			suspect++
		default:
			failed++
		}
	}
	text := fmt.Sprintf("%d of %d trials are valid", valid, len(rows))
	if suspect > 0 {
		text += fmt.Sprintf(", %d suspect", suspect)
	}
	if failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	return text
}
