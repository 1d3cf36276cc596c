// Package strict decodes YAML into structs and reports every mistake with its line and column: unknown keys with the
// nearest spelling, values of the wrong type or unit, missing keys, keys that exclude each other. A document is a tree
// of Nodes that remember their position. Values from elsewhere, such as a flag or a matrix, pass the same checks, and
// their problems point to their source.
//
//	[]byte ─ Parse ─► Node ─ Set(path, Node)* ─► Node ─ Decode ─► struct | Problems
//
// Struct tags define the accepted keys. The tag yaml names the key, or is ",rest" for a map that receives all other
// keys. The tag jsonschema, from which the JSON Schema is generated as well, may contain required, default=, enum=,
// minimum=, exclusiveMinimum=, maximum=, minItems=, maxItems= and pattern=. A Chooser is a field that one of several
// keys fills, each with its own type.
package strict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Source is the text of nodes: a file or a flag.
type Source struct {
	// Name is the path that the user gave, or the flag ("--set scale=2").
	Name  string
	lines []string
}

// NewSource returns a source that is not YAML, for problems that point into its lines.
func NewSource(name, text string) *Source {
	return &Source{Name: name, lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
}

// Pos is a position in a source. Line and Column count from 1; 0 is unknown.
type Pos struct {
	Source       *Source
	Line, Column int
}

// Find returns the position of the first occurrence of text at or after p, or p if there is none.
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

// WithoutText returns the position in a source without text, for problems with secrets: nothing is quoted.
func (p Pos) WithoutText() Pos {
	if p.Source != nil {
		name, _, _ := strings.Cut(p.Source.Name, "=") // of --set PATH=VALUE
		p.Source = &Source{Name: name}
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

func (p Pos) sourceName() string {
	if p.Source == nil {
		return ""
	}
	return p.Source.Name
}

// Problem is one mistake in a document.
type Problem struct {
	Pos Pos
	// Path in the document, in the syntax of --set: "workload.threads".
	Path string
	// Message names the mistake and the expectation.
	Message string
	// Hint is the correction, if it is known.
	Hint string
	// Err is the cause; may be nil.
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

// Problems is a list of mistakes in the order of the document.
type Problems []Problem

// Error returns every problem with an excerpt of its source.
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

// Sorted returns the problems without duplicates, by source in order of first appearance, then by position.
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
		return cmp.Or(
			cmp.Compare(order[a.Pos.sourceName()], order[b.Pos.sourceName()]),
			cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Column, b.Pos.Column),
		)
	})
	return sorted
}

// AsError returns ps, or nil if it is empty.
func (ps Problems) AsError() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// Locate sets the position of problems that have a path but no source. The paths are relative to prefix in root, and
// Locate makes them absolute. A Line and Column without a source count from the first line of the text at the path.
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

// inBlock returns the position of p within a block ("key: |") that starts after the line of start. It returns start for
// other forms of text.
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
// It begins with a newline. It is empty if the source has no lines.
func (p Problem) Excerpt() string {
	src := p.Pos.Source
	if src == nil || p.Pos.Line < 1 || p.Pos.Line > len(src.lines) {
		return ""
	}
	var b strings.Builder
	for n := max(1, p.Pos.Line-1); n <= p.Pos.Line; n++ {
		if n < p.Pos.Line && strings.Contains(strings.ToLower(src.lines[n-1]), "password") {
			continue // it may contain one
		}
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

// Advance returns the position offset bytes into the text that begins at p. It may return p for a text with several
// lines or escapes.
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
