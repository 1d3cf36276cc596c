package page

import (
	"fmt"
	"slices"
	"strings"

	"skerry/internal/report/results/data"
)

// words are the arguments of a function: the step or item, then NAME=VALUE.
type words struct {
	step    string
	options map[string]string
}

// parse reads options, whose names are among known.
func parse(step string, options, known []string) (words, error) {
	w := words{step: step, options: map[string]string{}}
	for _, o := range options {
		name, value, ok := strings.Cut(o, "=")
		if !ok || value == "" || w.options[name] != "" {
			return w, fmt.Errorf("option %q: write NAME=VALUE, each name once", o)
		}
		if !slices.Contains(known, name) {
			return w, fmt.Errorf("no option %q here: there are %s", name, strings.Join(known, ", "))
		}
		w.options[name] = value
	}
	return w, nil
}

func (w words) list(name string) []string {
	if w.options[name] == "" {
		return nil
	}
	return strings.Split(w.options[name], ",")
}

// series keeps the values of the series= asked for; all where none is.
func (w words) series(values []Value) []Value {
	wanted := w.list("series")
	if wanted == nil {
		return values
	}
	return slices.DeleteFunc(slices.Clone(values), func(v Value) bool {
		return !slices.Contains(wanted, v.Series)
	})
}

// filter keeps the rows whose parameters are as where says. Of what is not there yet
// the error is NotYet.
func (w words) filter(rows []data.Row) ([]data.Row, error) {
	kept := slices.Clone(rows)
	for _, want := range w.list("where") {
		name, value, ok := strings.Cut(want, "=")
		if !ok {
			return nil, fmt.Errorf("where: %q is no PARAMETER=VALUE", want)
		}
		if len(rows) > 0 {
			if _, known := rows[0].Parameters[name]; !known {
				return nil, fmt.Errorf("where: trials have no parameter %q", name)
			}
		}
		kept = slices.DeleteFunc(kept, func(r data.Row) bool { return r.Parameters[name] != value })
	}
	if len(kept) == 0 {
		return nil, NotYet{w.step}
	}
	return kept, nil
}

// with is the call with another value of a parameter in where.
func (w words) with(parameter, value string) words {
	where := slices.DeleteFunc(w.list("where"), func(s string) bool { return strings.HasPrefix(s, parameter+"=") })
	return words{step: w.step, options: map[string]string{"where": strings.Join(append(where, parameter+"="+value), ",")}}
}
