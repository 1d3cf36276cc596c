package page

import (
	"regexp"
	"strings"
)

// kind is what a part of a page is.
type kind int

const (
	paragraph kind = iota
	heading
	tableHead // a table's first two lines
	row
	item     // of a list
	ownLines // the result of a function that stands on lines of its own
	quoted   // between fences
	blank
)

// part is the least of a page that is left out as a whole.
type part struct {
	kind  kind
	level int // of a heading
	text  string
	// asks is for how many figures it asks of what was measured, has how many there are.
	asks, has int
	// waiting is what a note on what is missing calls the section's parts.
	waiting string
	// missing are the steps that it waits for, each as often as it asks for it.
	missing []string
	left    bool // out
}

// absent tells whether a part asks for figures and has none of them.
func (p part) absent() bool { return p.asks > 0 && p.has == 0 }

var (
	hashes = regexp.MustCompile(`^(#{1,6}) `)
	itemOf = regexp.MustCompile(`^([-*]|[0-9]+\.) `)
)

const fence = "```"

// split splits a page into its parts, line by line.
func split(text string) (out []part) {
	last := &part{kind: blank}
	for line := range strings.Lines(text) {
		if last.goesOn(line) {
			last.text += line
			continue
		}
		out = append(out, last.next(line))
		last = &out[len(out)-1]
	}
	return out
}

// goesOn tells whether a line belongs to the part before it.
func (p part) goesOn(line string) bool {
	switch p.kind {
	case quoted:
		return !closed(p.text)
	case tableHead:
		return strings.HasPrefix(line, "|") && strings.Count(p.text, "\n") < 2
	case paragraph, item:
		return p.next(line).kind == paragraph
	}
	return false
}

// next is the part that a line begins after this one.
func (p part) next(line string) part {
	begun := func(k kind) part { return part{kind: k, text: line} }
	switch {
	case strings.HasPrefix(line, fence):
		return begun(quoted)
	case strings.TrimSpace(line) == "":
		return begun(blank)
	case hashes.MatchString(line):
		return part{kind: heading, level: len(hashes.FindStringSubmatch(line)[1]), text: line}
	case strings.HasPrefix(line, block):
		return begun(ownLines)
	case itemOf.MatchString(line):
		return begun(item)
	case strings.HasPrefix(line, "|") && (p.kind == tableHead || p.kind == row):
		return begun(row)
	case strings.HasPrefix(line, "|"):
		return begun(tableHead)
	}
	return begun(paragraph)
}

// closed tells whether a quoted part has its last line.
func closed(text string) bool {
	return strings.Count(text, "\n") > 1 && strings.HasPrefix(text[strings.LastIndex(strings.TrimRight(text, "\n"), "\n")+1:], fence)
}

// join puts a page together of the parts that are left, blocks apart from what stands around them.
func join(all []part) []byte {
	var b strings.Builder
	apart := true // nothing, or an empty line, comes before
	gap := func() {
		if !apart {
			b.WriteByte('\n')
		}
		apart = true
	}
	for _, p := range all {
		switch {
		case p.left:
		case p.kind == blank:
			gap()
		case p.kind == ownLines:
			gap()
			b.WriteString(strings.TrimSpace(p.text) + "\n")
			apart = false
			gap()
		default:
			b.WriteString(p.text)
			apart = false
		}
	}
	return []byte(strings.TrimRight(b.String(), "\n") + "\n")
}
