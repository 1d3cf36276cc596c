// Package page fills in what of a page of results follows from data:
//
//	<!-- table STEP rows=workload,scale columns=goodput,goodput/scale=1,read.p99:ms where=workload=a -->
//	...whatever stands here is replaced...
//	<!-- end -->
//
// Likewise a picture (picture STEP x=scale y=goodput by=workload paper=fhc-5), a figure within
// a sentence (figure STEP of=goodput where=workload=a,scale=1) and how many trials there
// were (trials STEP). Means are over the valid trials of a cell.
package page

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"skerry/internal/report/results/data"
)

// Source reads what pages follow from.
type Source interface {
	// Rows are the trials of a step.
	Rows(step string) ([]data.Row, error)
	// Papers are the values of a figure or table of a document.
	Papers(item string) ([]Value, error)
}

// Page is a page filled in.
type Page struct {
	Text []byte
	// Pictures are SVG documents by their file's name.
	Pictures map[string]string
}

var (
	block = regexp.MustCompile(`(?s)<!-- (table|picture|figure|trials) ([^>]*?) -->(.*?)<!-- end -->`)
	begin = regexp.MustCompile(`<!-- (?:table|picture|figure|trials) `)
)

// fence begins and ends what a page quotes: markers in there are examples.
var fence = []byte("```")

// Fill fills in a page. name begins the names of its pictures.
func Fill(name string, text []byte, from Source) (Page, error) {
	p := Page{Pictures: map[string]string{}}
	parts := bytes.Split(text, fence)
	for i := 0; i < len(parts); i += 2 { // the others are quoted
		var err error
		if parts[i], err = p.fill(name, parts[i], from); err != nil {
			return p, fmt.Errorf("page %s: %w", name, err)
		}
	}
	p.Text = bytes.Join(parts, fence)
	return p, nil
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

func (p *Page) content(kind, name string, w words, from Source) (string, error) {
	rows, err := from.Rows(w.step)
	if err != nil {
		return "", err
	}
	if rows, err = w.filter(rows); err != nil {
		return "", err
	}
	switch kind {
	case "trials":
		return counts(rows), w.only()
	case "figure":
		return figure(rows, w)
	case "table":
		text, err := table(rows, w)
		return "\n\n" + text + "\n", err
	}
	var values []Value
	if item := w.options["paper"]; item != "" {
		if values, err = from.Papers(item); err != nil {
			return "", err
		}
	}
	svg, about, err := picture(rows, values, w)
	file := fmt.Sprintf("%s-%d.svg", name, len(p.Pictures)+1)
	p.Pictures[file] = svg
	return fmt.Sprintf("\n\n![%s](data/%s)\n\n", about, file), err
}

// words are what a marker says: the step, then NAME=VALUE.
type words struct {
	step    string
	options map[string]string
}

func parse(text string) (words, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 || strings.Contains(fields[0], "=") {
		return words{}, fmt.Errorf("the name of a step comes first")
	}
	w := words{step: fields[0], options: map[string]string{}}
	for _, f := range fields[1:] {
		name, value, ok := strings.Cut(f, "=")
		if !ok || value == "" || w.options[name] != "" {
			return words{}, fmt.Errorf("%q: write NAME=VALUE, each name once", f)
		}
		w.options[name] = value
	}
	return w, nil
}

// only is an error where there are options but those (and where).
func (w words) only(names ...string) error {
	for name := range w.options {
		if name != "where" && !slices.Contains(names, name) {
			return fmt.Errorf("no option %q here: there are where, %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

func (w words) list(name string) []string {
	if w.options[name] == "" {
		return nil
	}
	return strings.Split(w.options[name], ",")
}

// filter keeps the rows whose parameters are as where says.
func (w words) filter(rows []data.Row) ([]data.Row, error) {
	for _, want := range w.list("where") {
		name, value, ok := strings.Cut(want, "=")
		if !ok {
			return nil, fmt.Errorf("where: %q is no PARAMETER=VALUE", want)
		}
		rows = slices.DeleteFunc(slices.Clone(rows), func(r data.Row) bool { return r.Parameters[name] != value })
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("there is no such trial")
	}
	return rows, nil
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
