// Package assert is the lines of an experiment's assert: what a trial's figures must be, so
// that a run can stand in a user's tests.
//
//	read.p95 < 300ms
//	availability > 99.9%
//	lost_writes == 0
//	events.leave.recover < 60s
package assert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/base/unit"
	"skerry/internal/record"
	"skerry/internal/record/metric"
)

// Line is one assertion.
type Line struct {
	Text string
	// Name is the metric, Metric what it is of.
	Name   string
	Metric metric.Name
	op     string
	value  float64 // in the metric's unit
}

// SyntaxError is a line that cannot be read.
type SyntaxError struct {
	// Offset is where in the text, in bytes.
	Offset  int
	Message string
	Hint    string
	Err     error
}

func (e *SyntaxError) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "; " + e.Hint
}

func (e *SyntaxError) Unwrap() error { return e.Err }

// example ends the message about a line that is none.
const example = "write METRIC OPERATOR VALUE, such as read.p95 < 300ms"

// operators, longer ones first.
var operators = []string{"<=", ">=", "==", "!=", "<", ">"}

// Operators are the comparisons that there are.
func Operators() []string { return slices.Clone(operators) }

// Parse reads a line. The error is a *SyntaxError.
func Parse(text string) (Line, error) {
	at := strings.IndexAny(text, "<>=!")
	if at < 0 {
		return Line{}, &SyntaxError{Offset: len(text), Message: "there is no comparison in it", Hint: example}
	}
	l := Line{Text: strings.TrimSpace(text), Name: strings.TrimSpace(text[:at])}
	for _, op := range operators {
		if strings.HasPrefix(text[at:], op) {
			l.op = op
			break
		}
	}
	if l.op == "" {
		hint := "there are " + strings.Join(operators, " ")
		if text[at] == '=' {
			hint = "equality is =="
		}
		return Line{}, &SyntaxError{Offset: at, Message: fmt.Sprintf("%q is no comparison", text[at:at+1]), Hint: hint}
	}
	if l.Name == "" {
		return Line{}, &SyntaxError{Offset: at, Message: "no metric is named", Hint: example}
	}
	var err error
	if l.Metric, err = metric.Parse(l.Name); err != nil {
		return Line{}, &SyntaxError{Offset: strings.Index(text, l.Name), Message: err.Error(), Err: err}
	}
	rest := text[at+len(l.op):]
	value := strings.TrimSpace(rest)
	from := at + len(l.op) + strings.Index(rest, value)
	if value == "" {
		return Line{}, &SyntaxError{Offset: len(text), Message: fmt.Sprintf("nothing is given to compare %s with", l.Name), Hint: example}
	}
	if l.value, err = quantity(l.Metric.Unit, value); err != nil {
		return Line{}, &SyntaxError{Offset: from, Message: err.Error(), Err: err}
	}
	return l, nil
}

// quantity reads a value in a unit.
func quantity(u metric.Unit, s string) (float64, error) {
	switch u {
	case metric.Time:
		d, err := unit.ParseDuration(s)
		return d.Seconds(), err
	case metric.Share:
		return unit.ParseFraction(s)
	case metric.Bytes:
		n, err := unit.ParseBytes(s)
		return float64(n), err
	case metric.Rate:
		return number(strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(s, "/s"), "ops")), s, "5000 or 5000/s")
	case metric.Cores:
		return number(strings.TrimSpace(strings.TrimSuffix(s, "cores")), s, "1.5")
	}
	return number(s, s, "0")
}

// number reads text; whole is what to show of it.
func number(text, whole, example string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != f || f < 0 || f > 1e300 || strings.ContainsAny(text, "xXpP_") {
		return 0, fmt.Errorf("%w: %q is no number from 0 on (write %s)", unit.ErrSyntax, whole, example)
	}
	return f, nil
}

// Check holds a trial's figures against the line. Where a name stands for several events all
// of them must hold; a figure that the trial does not have does not hold.
func (l Line) Check(t record.Trial) record.Assertion {
	out := record.Assertion{Text: l.Text}
	for _, v := range metric.Of(t) {
		if v.Name != l.Name {
			continue
		}
		out.Value, out.Held = written(v), l.holds(v)
		out.Measured, out.Unit, out.AtLeast = &v.V, string(v.Unit), v.Beyond
		if !out.Held {
			break
		}
	}
	return out
}

func written(v metric.Value) string {
	if v.Beyond {
		return "more than " + v.Unit.Write(v.V)
	}
	return v.Unit.Write(v.V)
}

// holds compares; of a figure that is only known to be at least so much only what is sure holds.
func (l Line) holds(v metric.Value) bool {
	switch l.op {
	case "<":
		return v.Most() < l.value
	case "<=":
		return v.Most() <= l.value
	case ">":
		return v.V > l.value
	case ">=":
		return v.V >= l.value
	case "==":
		return !v.Beyond && v.V == l.value
	}
	return v.V > l.value || !v.Beyond && v.V != l.value
}

// All checks every line of an experiment that was read before; a line that cannot be read
// does not hold.
func All(lines []string, t record.Trial) []record.Assertion {
	var out []record.Assertion
	for _, text := range lines {
		l, err := Parse(text)
		if err != nil {
			out = append(out, record.Assertion{Text: text, Value: err.Error()})
			continue
		}
		out = append(out, l.Check(t))
	}
	return out
}

// Value is what the figure is compared with, in the metric's unit.
func (l Line) Value() float64 { return l.value }

// Below tells whether the figure must be below the value, Equality whether it must be that, or
// must not.
func (l Line) Below() bool { return strings.HasPrefix(l.op, "<") }

// Equality: see Below.
func (l Line) Equality() bool { return l.op == "==" || l.op == "!=" }
