package strict

import (
	"fmt"
	"strings"
)

// Locate gives every problem that has a path but no source the position of that path below
// prefix in a document, and completes its path. A Line and Column without a source are a
// place within the text at the path: they count from its first line.
func (ps Problems) Locate(root *Node, prefix string) Problems {
	located := make(Problems, len(ps))
	for i, p := range ps {
		if p.Pos.Source == nil {
			p.Path = Join(prefix, p.Path)
			p.Pos = root.At(p.Path).Pos.inBlock(p.Pos)
			p.Message = called(p.Path) + p.Message
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

// Into is the place so many bytes into the text that begins at p. In a text that goes over
// several lines, or has escapes, it is the begin of it.
func (p Pos) Into(offset int) Pos {
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
