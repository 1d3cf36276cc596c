package metric

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/base/unit"
	"skerry/internal/record"
)

// Assertion is one line of an experiment's assert: "read.p95 < 300ms", "lost_writes == 0".
type Assertion struct {
	Text string
	// Name is the metric as written.
	Name   string
	Metric Name
	op     string
	value  float64 // in the metric's unit
}

// SyntaxError reports a line that cannot be parsed.
type SyntaxError struct {
	// Offset is the byte offset in the line.
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

const assertionExample = "write METRIC OPERATOR VALUE, such as read.p95 < 300ms"

// operators, longer ones first.
var operators = []string{"<=", ">=", "==", "!=", "<", ">"}

// AssertionOperators are the comparison operators.
func AssertionOperators() []string { return slices.Clone(operators) }

// ParseAssertion parses a line. The error is a *SyntaxError.
func ParseAssertion(text string) (Assertion, error) {
	at := strings.IndexAny(text, "<>=!")
	if at < 0 {
		return Assertion{}, &SyntaxError{Offset: len(text), Message: "no comparison operator", Hint: assertionExample}
	}
	l := Assertion{Text: strings.TrimSpace(text), Name: strings.TrimSpace(text[:at])}
	for _, op := range operators {
		if strings.HasPrefix(text[at:], op) {
			l.op = op
			break
		}
	}
	if l.op == "" {
		hint := "use one of " + strings.Join(operators, " ")
		if text[at] == '=' {
			hint = "write == for equality"
		}
		return Assertion{}, &SyntaxError{Offset: at, Message: fmt.Sprintf("%q is not a comparison operator", text[at:at+1]), Hint: hint}
	}
	if l.Name == "" {
		return Assertion{}, &SyntaxError{Offset: at, Message: "no metric before the operator", Hint: assertionExample}
	}
	var err error
	if l.Metric, err = ParseName(l.Name); err != nil {
		return Assertion{}, &SyntaxError{Offset: strings.Index(text, l.Name), Message: err.Error(), Err: err}
	}
	rest := text[at+len(l.op):]
	value := strings.TrimSpace(rest)
	from := at + len(l.op) + strings.Index(rest, value)
	if value == "" {
		return Assertion{}, &SyntaxError{Offset: len(text), Message: fmt.Sprintf("no value to compare %s with", l.Name), Hint: assertionExample}
	}
	if l.value, err = parseQuantity(l.Metric.Unit, value); err != nil {
		return Assertion{}, &SyntaxError{Offset: from, Message: err.Error(), Err: err}
	}
	return l, nil
}

func parseQuantity(u Unit, s string) (float64, error) {
	switch u {
	case Time:
		d, err := unit.ParseDuration(s)
		return d.Seconds(), err
	case Share:
		return unit.ParseFraction(s)
	case Bytes:
		n, err := unit.ParseBytes(s)
		return float64(n), err
	case Rate:
		return parseNumber(strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(s, "/s"), "ops")), s, "5000 or 5000/s")
	case Cores:
		return parseNumber(strings.TrimSpace(strings.TrimSuffix(s, "cores")), s, "1.5")
	}
	return parseNumber(s, s, "0")
}

func parseNumber(text, whole, example string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != f || f < 0 || f > 1e300 || strings.ContainsAny(text, "xXpP_") {
		return 0, fmt.Errorf("%w: %q is not a number from 0 on (write %s)", unit.ErrSyntax, whole, example)
	}
	return f, nil
}

// Check compares a trial's figures with the assertion. If several events have the name, all must hold. A missing figure
// does not hold.
func (l Assertion) Check(t record.Trial) record.Assertion {
	out := record.Assertion{Text: l.Text}
	for _, v := range Values(t) {
		if v.Name != l.Name {
			continue
		}
		out.Value, out.Held = formatValue(v), l.holds(v)
		out.Measured, out.Unit, out.AtLeast = &v.V, string(v.Unit), v.LowerBound
		if !out.Held {
			break
		}
	}
	return out
}

func formatValue(v Value) string {
	if v.LowerBound {
		return "more than " + v.Unit.Format(v.V)
	}
	return v.Unit.Format(v.V)
}

// holds compares; a lower bound holds only if every possible value does.
func (l Assertion) holds(v Value) bool {
	switch l.op {
	case "<":
		return v.upperBound() < l.value
	case "<=":
		return v.upperBound() <= l.value
	case ">":
		return v.V > l.value
	case ">=":
		return v.V >= l.value
	case "==":
		return !v.LowerBound && v.V == l.value
	}
	return v.V > l.value || !v.LowerBound && v.V != l.value
}

// CheckAssertions checks every line of an experiment. A line that cannot be parsed does not hold.
func CheckAssertions(lines []string, t record.Trial) []record.Assertion {
	var out []record.Assertion
	for _, text := range lines {
		l, err := ParseAssertion(text)
		if err != nil {
			out = append(out, record.Assertion{Text: text, Value: err.Error()})
			continue
		}
		out = append(out, l.Check(t))
	}
	return out
}

// Value is the limit, in the metric's unit.
func (l Assertion) Value() float64 { return l.value }

// Below reports whether the figure must be below the limit.
func (l Assertion) Below() bool { return strings.HasPrefix(l.op, "<") }

// Equality reports whether the figure must equal, or differ from, the limit.
func (l Assertion) Equality() bool { return l.op == "==" || l.op == "!=" }
