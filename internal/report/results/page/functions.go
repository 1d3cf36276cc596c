package page

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"
)

// result is what a function of a template returned. The text that the template makes holds a token in its place, since
// the part of the page around it decides what is shown of a figure that is missing.
type result struct {
	call string
	text string
	// asks is how many figures it asks for of what was measured, has how many there are.
	asks, has int
	missing   []string // steps that are not measured yet
	waiting   string   // the argument of waiting
}

// A token is the number of a result between two of these.
const inline, block = "\x00", "\x01"

var token = regexp.MustCompile(inline + `([0-9]+)` + inline + `|` + block + `([0-9]+)` + block)

// function is a function of templates.
type function struct {
	block    bool // its result stands on lines of its own
	measured bool // it is of measured trials
	options  string
}

var functions = map[string]function{
	"table":    {true, true, "where rows columns paper series sort each"},
	"ranks":    {true, true, "of by pairs paper as"},
	"versus":   {true, true, "where of rows by between paper"},
	"picture":  {true, true, "where x y by paper series each"},
	"graph":    {true, true, "where by"},
	"over":     {true, true, "where y by as axis"},
	"figure":   {false, true, "where of"},
	"claim":    {false, true, "where of least most"},
	"trials":   {false, true, "where"},
	"paper":    {true, false, "series"},
	"effects":  {true, false, ""},
	"waiting":  {true, false, ""},
	"printed":  {false, false, "series x"},
	"progress": {false, false, ""},
}

func (f *filler) functions() template.FuncMap {
	all := template.FuncMap{"words": f.words, "rows": rows}
	for kind, is := range functions {
		all[kind] = func(step string, options ...string) (string, error) {
			w, err := parse(step, options, strings.Fields(is.options))
			if err != nil {
				return "", err
			}
			r := result{call: kind + " " + step}
			r.text, err = f.content(kind, w)
			yet := NotYet{}
			switch {
			case errors.As(err, &yet):
				r.asks, r.missing = 1, []string{yet.Step}
			case err != nil:
				return "", err
			case is.measured:
				r.asks, r.has = 1, 1
			case kind == "waiting":
				r.waiting = step
			}
			f.page.Calls = append(f.page.Calls, Call{kind, step, options, r.text})
			if is.block {
				return f.token(block, r), nil
			}
			return f.token(inline, r), nil
		}
	}
	return all
}

func (f *filler) token(mark string, r result) string {
	f.results = append(f.results, r)
	return mark + strconv.Itoa(len(f.results)-1) + mark
}

// words are words around figures, each at a %s of the format. They are left out if none of the figures is measured.
func (f *filler) words(format string, figures ...any) (string, error) {
	p := part{text: fmt.Sprintf(format, figures...)}
	if err := f.fill(&p); err != nil {
		return "", err
	}
	r := result{text: p.text, asks: p.asks, has: p.has, missing: p.missing}
	if p.absent() {
		r = result{missing: p.missing}
	}
	return f.token(inline, r), nil
}

// fill puts the results into a part whose tokens it has.
func (f *filler) fill(p *part) (err error) {
	p.text = token.ReplaceAllStringFunc(p.text, func(found string) string {
		i, wrong := strconv.Atoi(strings.Trim(found, inline+block))
		if wrong != nil {
			err = errors.Join(err, wrong)
			return ""
		}
		r := f.results[i]
		if p.kind != ownLines && strings.HasPrefix(found, block) {
			err = errors.Join(err, fmt.Errorf("%s: it stands on a line of its own", r.call))
		}
		p.asks, p.has, p.missing, p.waiting = p.asks+r.asks, p.has+r.has, append(p.missing, r.missing...), p.waiting+r.waiting
		switch {
		case r.asks == 0 || r.has > 0:
			return r.text
		case p.kind == row: // as tables have it that are made
			return "–"
		}
		return NotYet{}.Error()
	})
	return err
}

// rows are the lines of a table by their columns: head and lines are VALUE | VALUE.
func rows(head string, lines ...string) (out []map[string]string, err error) {
	names := strings.Split(head, " | ")
	for _, line := range lines {
		values := strings.Split(line, " | ")
		if len(values) != len(names) {
			return nil, fmt.Errorf("row %q has %d values, want %d: %s", line, len(values), len(names), head)
		}
		of := map[string]string{}
		for i, name := range names {
			of[name] = values[i]
		}
		out = append(out, of)
	}
	return out, nil
}
