package results

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

// callResult is the result of a template function. The template output holds a token in its place,
// because the surrounding part decides how a missing figure is shown.
type callResult struct {
	call string
	text string
	// asks counts the requested figures, has those that are measured.
	asks, has int
	missing   []string // steps without data
	waiting   string   // argument of waiting
}

// A token is the index of a result between two of these marks.
const inline, block = "\x00", "\x01"

var token = regexp.MustCompile(inline + `([0-9]+)` + inline + `|` + block + `([0-9]+)` + block)

type templateFunction struct {
	block    bool // the result is a block of its own
	measured bool // the function reads trials
	options  string
}

var templateFunctions = map[string]templateFunction{
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

func (f *filler) templateFunctions() template.FuncMap {
	all := template.FuncMap{"words": f.joinWords, "rows": parseRows}
	for kind, is := range templateFunctions {
		all[kind] = func(step string, options ...string) (string, error) {
			w, err := parseArguments(step, options, strings.Fields(is.options))
			if err != nil {
				return "", err
			}
			r := callResult{call: kind + " " + step}
			r.text, err = f.evaluate(kind, w)
			yet := notMeasuredError{}
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
			f.page.Calls = append(f.page.Calls, functionCall{kind, step, options, r.text})
			if is.block {
				return f.newToken(block, r), nil
			}
			return f.newToken(inline, r), nil
		}
	}
	return all
}

func (f *filler) newToken(mark string, r callResult) string {
	f.results = append(f.results, r)
	return mark + strconv.Itoa(len(f.results)-1) + mark
}

// joinWords formats words around figures. It returns nothing if none of the figures is measured.
func (f *filler) joinWords(format string, figures ...any) (string, error) {
	p := part{text: fmt.Sprintf(format, figures...)}
	if err := f.resolveTokens(&p); err != nil {
		return "", err
	}
	r := callResult{text: p.text, asks: p.asks, has: p.has, missing: p.missing}
	if p.isMissing() {
		r = callResult{missing: p.missing}
	}
	return f.newToken(inline, r), nil
}

func (f *filler) resolveTokens(p *part) (err error) {
	p.text = token.ReplaceAllStringFunc(p.text, func(found string) string {
		i, wrong := strconv.Atoi(strings.Trim(found, inline+block))
		if wrong != nil {
			err = errors.Join(err, wrong)
			return ""
		}
		r := f.results[i]
		if p.kind != ownLines && strings.HasPrefix(found, block) {
			err = errors.Join(err, fmt.Errorf("%s: must be on a line of its own", r.call))
		}
		p.asks, p.has, p.missing, p.waiting = p.asks+r.asks, p.has+r.has, append(p.missing, r.missing...), p.waiting+r.waiting
		switch {
		case r.asks == 0 || r.has > 0:
			return r.text
		case p.kind == row: // as in generated tables
			return "–"
		}
		return notMeasuredError{}.Error()
	})
	return err
}

// parseRows returns the lines of a table by column. head and lines are VALUE | VALUE.
func parseRows(head string, lines ...string) (out []map[string]string, err error) {
	names := strings.Split(head, " | ")
	for _, line := range lines {
		values := strings.Split(line, " | ")
		if len(values) != len(names) {
			return nil, fmt.Errorf("row %q: got %d values, want %d: %s", line, len(values), len(names), head)
		}
		of := map[string]string{}
		for i, name := range names {
			of[name] = values[i]
		}
		out = append(out, of)
	}
	return out, nil
}

// arguments are a step or item, then options NAME=VALUE.
type arguments struct {
	step    string
	options map[string]string
}

func parseArguments(step string, options, known []string) (arguments, error) {
	w := arguments{step: step, options: map[string]string{}}
	for _, o := range options {
		name, value, ok := strings.Cut(o, "=")
		if !ok || value == "" || w.options[name] != "" {
			return w, fmt.Errorf("option %q: want NAME=VALUE, each name once", o)
		}
		if !slices.Contains(known, name) {
			return w, fmt.Errorf("unknown option %q: want one of %s", name, strings.Join(known, ", "))
		}
		w.options[name] = value
	}
	return w, nil
}

func (w arguments) list(name string) []string {
	if w.options[name] == "" {
		return nil
	}
	return strings.Split(w.options[name], ",")
}

func (w arguments) filterSeries(values []DocumentValue) []DocumentValue {
	wanted := w.list("series")
	if wanted == nil {
		return values
	}
	return slices.DeleteFunc(slices.Clone(values), func(v DocumentValue) bool {
		return !slices.Contains(wanted, v.Series)
	})
}

// filterRows returns the rows that match where=. The error is notMeasuredError if there are none.
func (w arguments) filterRows(rows []Row) ([]Row, error) {
	kept := slices.Clone(rows)
	for _, want := range w.list("where") {
		name, value, ok := strings.Cut(want, "=")
		if !ok {
			return nil, fmt.Errorf("where: %q is not PARAMETER=VALUE", want)
		}
		if len(rows) > 0 {
			if _, known := rows[0].Parameters[name]; !known {
				return nil, fmt.Errorf("where: trials have no parameter %q", name)
			}
		}
		kept = slices.DeleteFunc(kept, func(r Row) bool { return r.Parameters[name] != value })
	}
	if len(kept) == 0 {
		return nil, notMeasuredError{w.step}
	}
	return kept, nil
}

func (w arguments) withParameter(parameter, value string) arguments {
	where := slices.DeleteFunc(w.list("where"), func(s string) bool { return strings.HasPrefix(s, parameter+"=") })
	return arguments{step: w.step, options: map[string]string{"where": strings.Join(append(where, parameter+"="+value), ",")}}
}
