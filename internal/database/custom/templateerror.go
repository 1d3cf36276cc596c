package custom

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"skerry/internal/base/strict"
)

// templateError is what is wrong with a template, in the words of who wrote it.
type templateError struct {
	message string
	part    string // the part that is wrong, "" where that is all of it
	err     error
}

func (e templateError) Error() string { return e.message }
func (e templateError) Unwrap() error { return e.err }

// What package text/template says of a name that is not there, and of anything else.
var (
	noField    = regexp.MustCompile(`at <([^>]*)>: can't evaluate field (\w+)`)
	noEntry    = regexp.MustCompile(`at <([^>]*)>: map has no entry for key "([^"]*)"`)
	noFunction = regexp.MustCompile(`function "([^"]*)" not defined`)
	wrongCount = regexp.MustCompile(`at <([^>]*)>: wrong number of args for (\w+)`)
	other      = regexp.MustCompile(`^template: command:\d+(?::\d+)?: (?:executing "command" at <([^>]*)>: )?(.*)$`)
)

// functionExamples show how each function is called.
var functionExamples = map[string]string{
	"addrs": `{{addrs .Members ","}}`, "names": `{{names .Members ","}}`, "hostports": `{{hostports .Members 6379 ","}}`,
}

// explainTemplateError turns an error of text/template into one that speaks of the template.
func explainTemplateError(template string, err error) error {
	text := err.Error()
	if i := strings.Index(text, "template: "); i >= 0 {
		text = text[i:]
	}
	if m := noField.FindStringSubmatch(text); m != nil {
		return templateError{fmt.Sprintf("{{%s}}: there is no .%s", m[1], m[2]), m[1], err}
	}
	if m := noEntry.FindStringSubmatch(text); m != nil {
		return templateError{fmt.Sprintf("{{%s}}: there is no %q; options are listed under options:, programs under install:", m[1], m[2]), m[1], err}
	}
	if m := noFunction.FindStringSubmatch(text); m != nil {
		return templateError{fmt.Sprintf("there is no function %s; there are %s", m[1], strings.Join(slices.Sorted(maps.Keys(functionExamples)), ", ")), m[1], err}
	}
	if m := wrongCount.FindStringSubmatch(text); m != nil && functionExamples[m[2]] != "" {
		return templateError{fmt.Sprintf("%s is written as %s", m[2], functionExamples[m[2]]), m[2], err}
	}
	if strings.HasSuffix(text, "unexpected EOF") {
		return templateError{"an {{if}}, {{with}} or {{range}} has no {{end}}", "{{", err}
	}
	m := other.FindStringSubmatch(text)
	switch action := findBadAction(template); {
	case m == nil:
		return err
	case m[1] == "" && action != "":
		return templateError{fmt.Sprintf("%s cannot be read: %s", action, m[2]), action, err}
	default:
		return templateError{m[2], m[1], err}
	}
}

// findBadAction is the first {{...}} of a template that cannot be read, on its line; "" where all can.
func findBadAction(text string) string {
	for end := 0; end < len(text); {
		next := strings.Index(text[end:], "}}")
		if next < 0 {
			end = len(text)
		} else {
			end += next + len("}}")
		}
		_, err := template.New("command").Funcs(functions).Parse(text[:end])
		start := strings.LastIndex(text[:end], "{{")
		if err == nil || start < 0 || strings.HasSuffix(err.Error(), "unexpected EOF") {
			continue
		}
		action, _, _ := strings.Cut(text[start:end], "\n")
		return action
	}
	return ""
}

// templatePos is where in a document what is wrong with a template stands: the part itself, where the
// line has it, else the value.
func templatePos(n *strict.Node, err error) strict.Pos {
	var wrong templateError
	if !errors.As(err, &wrong) || wrong.part == "" {
		return n.Pos
	}
	return n.Pos.Find(wrong.part)
}
