package results

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

type partKind int

const (
	paragraph partKind = iota
	heading
	tableHead // the first two lines of a table
	row
	item     // of a list
	ownLines // a block returned by a function
	quoted   // fenced code
	blank
)

// part is the smallest unit of a page that can be omitted.
type part struct {
	kind  partKind
	level int // of a heading
	text  string
	// asks counts the requested figures, has those that are measured.
	asks, has int
	// waiting is the name of the section's parts in a note on missing data.
	waiting string
	missing []string
	omitted bool
}

func (p part) isMissing() bool { return p.asks > 0 && p.has == 0 }

var (
	hashes = regexp.MustCompile(`^(#{1,6}) `)
	itemOf = regexp.MustCompile(`^([-*]|[0-9]+\.) `)
)

const fence = "```"

// splitParts splits a page into parts.
func splitParts(text string) (out []part) {
	last := &part{kind: blank}
	for line := range strings.Lines(text) {
		if last.continues(line) {
			last.text += line
			continue
		}
		out = append(out, last.startPart(line))
		last = &out[len(out)-1]
	}
	return out
}

// continues reports whether a line belongs to the part.
func (p part) continues(line string) bool {
	switch p.kind {
	case quoted:
		return !isClosed(p.text)
	case tableHead:
		return strings.HasPrefix(line, "|") && strings.Count(p.text, "\n") < 2
	case paragraph, item:
		return p.startPart(line).kind == paragraph
	}
	return false
}

// startPart returns the part that a line begins after this one.
func (p part) startPart(line string) part {
	begun := func(k partKind) part { return part{kind: k, text: line} }
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

// isClosed reports whether fenced code has its last line.
func isClosed(text string) bool {
	return strings.Count(text, "\n") > 1 && strings.HasPrefix(text[strings.LastIndex(strings.TrimRight(text, "\n"), "\n")+1:], fence)
}

// joinParts joins the remaining parts, with blank lines around blocks.
func joinParts(all []part) []byte {
	var b strings.Builder
	apart := true // at the start or after a blank line
	gap := func() {
		if !apart {
			b.WriteByte('\n')
		}
		apart = true
	}
	for _, p := range all {
		switch {
		case p.omitted:
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

// omitMissing omits parts without measured figures, then table heads and lead-ins whose content is
// omitted, and sections.
func omitMissing(all []part) {
	for i := range all {
		all[i].omitted = all[i].isMissing()
	}
	for i := range all {
		if all[i].kind == tableHead && allOmitted(takeWhile(all[i+1:], func(p part) bool { return p.kind == row })) {
			all[i].omitted = true
		}
	}
	for i, p := range all {
		if isLeadIn(p) && allOmitted(takeWhile(all[i+1:], isIntroduced)) {
			all[i].omitted = true
		}
	}
	for i, p := range all {
		if p.kind == heading && p.level > 1 && isUnanswered(sectionAt(all, i)) {
			for j := range sectionAt(all, i) {
				all[i+j].omitted = true
			}
		}
	}
}

func takeWhile(parts []part, goesOn func(part) bool) []part {
	for i, p := range parts {
		if !goesOn(p) {
			return parts[:i]
		}
	}
	return parts
}

// allOmitted reports whether there are parts and all of them are omitted.
func allOmitted(parts []part) bool {
	there := false
	for _, p := range parts {
		if p.kind == blank {
			continue
		}
		if !p.omitted {
			return false
		}
		there = true
	}
	return there
}

// isLeadIn reports whether a part introduces the next ones.
func isLeadIn(p part) bool {
	return p.kind == paragraph && p.has == 0 && strings.HasSuffix(strings.TrimSpace(p.text), ":")
}

// isIntroduced reports whether a lead-in can introduce the part.
func isIntroduced(p part) bool {
	return p.kind == blank || p.kind == ownLines && p.waiting == "" || p.kind == item || p.kind == tableHead || p.kind == row
}

// sectionAt returns a heading and everything below it.
func sectionAt(all []part, at int) []part {
	for i := at + 1; i < len(all); i++ {
		if all[i].kind == heading && all[i].level <= all[at].level {
			return all[at:i]
		}
	}
	return all[at:]
}

// isUnanswered reports whether a section requests figures, has none, and has no waiting note.
func isUnanswered(parts []part) bool {
	asks := 0
	for _, p := range parts {
		if p.has > 0 || p.waiting != "" {
			return false
		}
		asks += p.asks
	}
	return asks > 0
}

// MissingSteps describes how to measure steps without data.
type MissingSteps struct {
	// Names are arguments of skerry reproduce: steps, or pages that are mostly missing.
	Names []string
	// Takes is the longest expected duration, 0 if unknown.
	Takes time.Duration
}

// fillWaiting fills each waiting part with a note on its section.
func (f *filler) fillWaiting(all []part) (err error) {
	for i := range all {
		if all[i].waiting == "" {
			continue
		}
		begin := i
		for begin > 0 && all[begin].kind != heading {
			begin--
		}
		if all[i].text, err = f.waitingNote(sectionAt(all, begin), all[i].waiting); err != nil {
			return err
		}
		all[i].omitted = all[i].text == ""
	}
	return nil
}

// waitingNote describes the missing parts of a section, "" if nothing is missing. things names its
// parts.
func (f *filler) waitingNote(section []part, things string) (string, error) {
	asking, absent := 0, 0
	var steps []string
	for _, p := range section {
		if p.asks > 0 {
			asking++
		}
		if p.isMissing() {
			absent++
		}
		steps = append(steps, p.missing...)
	}
	if len(steps) == 0 {
		return "", nil
	}
	slices.Sort(steps)
	missing, err := f.from.Missing(slices.Compact(steps))
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("Some figures of the %s are not measured yet.", things)
	switch {
	case absent > 0 && absent == asking:
		text = fmt.Sprintf("None of the %d %s is measured yet.", asking, things)
	case absent > 0:
		text = fmt.Sprintf("%d of the %d %s are not measured yet and are omitted.", absent, asking, things)
	}
	return text + " This command measures them on an otherwise idle machine" + describeDuration(missing.Takes) + ":\n\n" +
		fence + "\nskerry reproduce " + strings.Join(missing.Names, " ") + "\n" + fence + "\n", nil
}

func describeDuration(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < 2*time.Hour:
		return fmt.Sprintf(" in at most %.0f minutes", max(1, d.Minutes()))
	}
	return fmt.Sprintf(" in at most %.0f hours", d.Hours())
}

func describeProgress(measured, all int) string {
	switch measured {
	case 0:
		return "none"
	case all:
		return "all"
	}
	return fmt.Sprintf("%d of %d", measured, all)
}
