package own

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"skerry/internal/base/strict"
)

// wrongTemplate is what is wrong with a template, in the words of who wrote it.
type wrongTemplate struct {
	message string
	at      string // the part that is wrong, "" where that is all of it
	err     error
}

func (e wrongTemplate) Error() string { return e.message }
func (e wrongTemplate) Unwrap() error { return e.err }

// What package text/template says of a name that is not there, and of anything else.
var (
	noField = regexp.MustCompile(`at <([^>]*)>: can't evaluate field (\w+)`)
	noEntry = regexp.MustCompile(`at <([^>]*)>: map has no entry for key "([^"]*)"`)
	other   = regexp.MustCompile(`^template: command:\d+(?::\d+)?: (?:executing "command" at <([^>]*)>: )?(.*)$`)
)

// told turns an error of text/template into one that speaks of the template.
func told(err error) error {
	text := err.Error()
	if i := strings.Index(text, "template: "); i >= 0 {
		text = text[i:]
	}
	if m := noField.FindStringSubmatch(text); m != nil {
		return wrongTemplate{fmt.Sprintf("{{%s}}: there is no .%s", m[1], m[2]), m[1], err}
	}
	if m := noEntry.FindStringSubmatch(text); m != nil {
		return wrongTemplate{fmt.Sprintf("{{%s}}: there is no %q; options are listed under options:, programs under install:", m[1], m[2]), m[1], err}
	}
	if m := other.FindStringSubmatch(text); m != nil {
		return wrongTemplate{m[2], m[1], err}
	}
	return err
}

// place is where in a document what is wrong with a template stands: the part itself, where the
// line has it, else the value.
func place(n *strict.Node, err error) strict.Pos {
	var wrong wrongTemplate
	if !errors.As(err, &wrong) || wrong.at == "" {
		return n.Pos
	}
	return n.Pos.Find(wrong.at)
}
