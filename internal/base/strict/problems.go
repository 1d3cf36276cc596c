// Package strict decodes YAML into structs and tells every mistake in it at its line
// and column: unknown keys with the nearest right spelling, values of the wrong type or
// unit, what is missing, what excludes what. A document is a tree of Nodes that remember
// where they were written, so that values put in from elsewhere (a flag, a matrix) are
// checked by the same rules and blamed on where they came from.
//
//	[]byte ─ Parse ─► Node ─ Set(path, Node)* ─► Node ─ Decode ─► struct | Problems
//
// What a struct accepts stands in its tags: yaml names the key, or is ",rest" for a map that
// takes the keys that no other field does; jsonschema, which the
// JSON Schema is generated from too, holds required, default=, enum=, minimum=,
// exclusiveMinimum=, maximum=, minItems=, maxItems= and pattern=. A field may stand for several
// keys of which the document has one, each with a type of its own: see Chooser.
package strict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Source is a text that nodes were read from: a file or a flag.
type Source struct {
	// Name is the file's path as the user gave it, or the flag ("--set scale=2").
	Name  string
	lines []string
}

// NewSource is a text that is not YAML but whose lines messages point into.
func NewSource(name, text string) *Source {
	return &Source{Name: name, lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
}

// Pos is a place in a source. Line and Column count from 1; 0 where the source has none.
type Pos struct {
	Source       *Source
	Line, Column int
}

// Find is the place of a text at this place or behind it, this place where there is none.
func (p Pos) Find(text string) Pos {
	if p.Source == nil || p.Line < 1 {
		return p
	}
	for i := p.Line - 1; i < len(p.Source.lines); i++ {
		from := 0
		if i == p.Line-1 {
			from = min(max(0, p.Column-1), len(p.Source.lines[i]))
		}
		if at := strings.Index(p.Source.lines[i][from:], text); at >= 0 {
			return Pos{p.Source, i + 1, from + at + 1}
		}
	}
	return p
}

// String is "file:line:column".
func (p Pos) String() string {
	switch {
	case p.Source == nil:
		return ""
	case p.Line == 0:
		return p.Source.Name
	}
	return fmt.Sprintf("%s:%d:%d", p.Source.Name, p.Line, p.Column)
}

// sourceName is the source's.
func (p Pos) sourceName() string {
	if p.Source == nil {
		return ""
	}
	return p.Source.Name
}

// Problem is one mistake.
type Problem struct {
	Pos Pos
	// Path is where in the document, as --set writes it: "workload.threads".
	Path string
	// Message says what is wrong and what was expected.
	Message string
	// Hint is what to write in its place, where that is known.
	Hint string
	// Err is the cause, where there is one.
	Err error
}

func (p Problem) Error() string {
	s := p.Message
	if p.Hint != "" {
		s += "; " + p.Hint
	}
	if pos := p.Pos.String(); pos != "" {
		s = pos + ": " + s
	}
	return s
}

// Unwrap returns the cause.
func (p Problem) Unwrap() error { return p.Err }

// Problems are all mistakes found, in the order of the document.
type Problems []Problem

// Error holds every problem with an excerpt of its source.
func (ps Problems) Error() string {
	var b strings.Builder
	if len(ps) > 1 {
		fmt.Fprintf(&b, "%d problems\n", len(ps))
	}
	for i, p := range ps {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.Error())
		b.WriteString(p.Excerpt())
	}
	return b.String()
}

// Unwrap returns every problem.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// Sorted returns every problem once, in the order of the sources that first had one and
// in each by place.
func (ps Problems) Sorted() Problems {
	order := map[string]int{}
	seen := map[string]bool{}
	var sorted Problems
	for _, p := range ps {
		if text := p.Error(); !seen[text] {
			seen[text] = true
			sorted = append(sorted, p)
		}
		if name := p.Pos.sourceName(); order[name] == 0 {
			order[name] = len(order) + 1
		}
	}
	slices.SortStableFunc(sorted, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(order[a.Pos.sourceName()], order[b.Pos.sourceName()]), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return sorted
}

// AsError is nil where there is no problem.
func (ps Problems) AsError() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// Locate gives every problem that has a path but no source the position of that path below
// prefix in a document, and completes its path. A Line and Column without a source are a
// place within the text at the path: they count from its first line.
func (ps Problems) Locate(root *Node, prefix string) Problems {
	located := make(Problems, len(ps))
	for i, p := range ps {
		if p.Pos.Source == nil {
			p.Path = Join(prefix, p.Path)
			p.Pos = root.At(p.Path).Pos.inBlock(p.Pos)
			p.Message = messagePrefix(p.Path) + p.Message
		}
		located[i] = p
	}
	return located
}

// inBlock is the place of p within a block ("key: |") whose text begins below start; start
// where the text is written in another way.
func (start Pos) inBlock(p Pos) Pos {
	src, line := start.Source, start.Line+p.Line
	if p.Line == 0 || src == nil || start.Line < 1 || line > len(src.lines) {
		return start
	}
	if head := strings.TrimRight(src.lines[start.Line-1], " \t"); !strings.HasSuffix(head, "|") {
		return start
	}
	text, first := src.lines[line-1], src.lines[start.Line]
	indent := len(first) - len(strings.TrimLeft(first, " "))
	if len(text) < indent {
		return start
	}
	return Pos{Source: src, Line: line, Column: indent + p.Column}
}

// Excerpt shows the line of a problem and the one before it, with a caret under the column:
//
//	11 | workload:
//	12 |   threds: 64
//	   |   ^
//
// It begins with a newline, and is empty where the source has no lines.
func (p Problem) Excerpt() string {
	src := p.Pos.Source
	if src == nil || p.Pos.Line < 1 || p.Pos.Line > len(src.lines) {
		return ""
	}
	var b strings.Builder
	for n := max(1, p.Pos.Line-1); n <= p.Pos.Line; n++ {
		fmt.Fprintf(&b, "\n%5d | %s", n, src.lines[n-1])
	}
	indent := []rune(src.lines[p.Pos.Line-1])
	indent = indent[:min(len(indent), max(0, p.Pos.Column-1))]
	for i, r := range indent {
		if r != '\t' {
			indent[i] = ' '
		}
	}
	fmt.Fprintf(&b, "\n      | %s^", string(indent))
	return b.String()
}

// Advance is the place so many bytes into the text that begins at p. In a text that goes over
// several lines, or has escapes, it is the begin of it.
func (p Pos) Advance(offset int) Pos {
	if p.Source == nil || p.Line < 1 || p.Line > len(p.Source.lines) {
		return p
	}
	line := p.Source.lines[p.Line-1]
	if runes := []rune(line); p.Column >= 1 && p.Column <= len(runes) {
		if text := string(runes[p.Column-1:]); strings.HasPrefix(text, `"`) || strings.HasPrefix(text, "'") {
			p.Column++
		}
	}
	if p.Column-1+offset <= len(line) {
		p.Column += offset
	}
	return p
}
