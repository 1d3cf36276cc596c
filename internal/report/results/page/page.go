// Package page makes a page of results from its template, which is a page of Markdown with markers:
//
//	<!-- table STEP rows=workload,scale columns=goodput,goodput/scale=1,read.p99:ms where=workload=a -->
//
// Each marker names a step of the plan or an item of the documents' values first:
//
//	table, picture, graph, over,
//	ranks, versus                 of a step's trials, a block of their own; with each=PREFIX a row for
//	                              each NAME of their figures PREFIX.NAME.FIGURE
//	figure, claim, trials         of a step's trials, within a sentence
//	paper, effects                a document's table as it is, and its effect sizes recomputed
//	printed                       a document's value, within a sentence
//	progress                      how many steps of a page of the plan are measured, within a sentence
//	waiting                       which command measures what the section around it lacks: <!-- waiting findings -->
//
// Means are over the trials of a cell that count (data.Row.Counts). What was not measured yet is left out (absent.go):
//
//	a row, an item, a paragraph   where none of its figures is there; where some are, the others say so
//	a whole table, a lead-in      where nothing of it, or of what it leads to, is left
//	a section with its heading    where it asks for figures and has none, unless it says so itself (waiting)
//	<!-- if measured -->, text    to <!-- end -->: words of a sentence that is worth reading without them
//
// What several steps have alike stands once (repeat.go).
package page

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"skerry/internal/report/results/data"
)

// NotYet is the error of a step that is in the plan and was not measured yet.
type NotYet struct{ Step string }

func (n NotYet) Error() string { return "not measured yet" }

// Source reads what pages follow from.
type Source interface {
	// Rows are the trials of a step, Points what they did over time. The error may be NotYet.
	Rows(step string) ([]data.Row, error)
	Points(step string) ([]data.Point, error)
	// Papers are the values of a figure or table of a document.
	Papers(item string) ([]Value, error)
	// Missing tells how steps are measured that were not yet.
	Missing(steps []string) (Missing, error)
	// Progress is how many of the steps of a page of the plan are measured.
	Progress(page string) (measured, all int, err error)
}

// Page is a page filled in.
type Page struct {
	Text []byte
	// Pictures are SVG documents by their file's name.
	Pictures map[string]string
}

const (
	within = `figure|claim|trials|printed|progress`
	blocks = `table|ranks|versus|picture|graph|over|paper|effects|waiting`
)

var (
	marker  = regexp.MustCompile(`<!-- (` + within + `|` + blocks + `) ([^>]*?) -->`)
	figures = regexp.MustCompile(`^(table|ranks|versus|picture|graph|over|figure|claim|trials)$`)
	comment = regexp.MustCompile(`(?s)<!--.*?-->`)
	perhaps = regexp.MustCompile(`(?s)<!-- if measured -->(.*?)<!-- end -->`)
)

// Fill makes a page from its template. name begins the names of its pictures.
func Fill(name string, template []byte, from Source) (Page, error) {
	f := filler{name: name, from: from, page: Page{Pictures: map[string]string{}}}
	all := split(string(template))
	for i := range all {
		if err := f.fill(&all[i]); err != nil {
			return f.page, fmt.Errorf("page %s: %w", name, err)
		}
	}
	leaveOut(all)
	if err := f.notes(all); err != nil {
		return f.page, fmt.Errorf("page %s: %w", name, err)
	}
	f.page.Text = join(all)
	return f.page, nil
}

// Markers are the markers of a template, those apart that it quotes.
func Markers(template []byte) (out []string) {
	for _, p := range split(string(template)) {
		if p.kind != quoted {
			out = append(out, marker.FindAllString(p.text, -1)...)
		}
	}
	return out
}

// Prose is a template without its markers and without what it quotes.
func Prose(template []byte) string {
	var b strings.Builder
	for _, p := range split(string(template)) {
		if p.kind != quoted {
			b.WriteString(comment.ReplaceAllString(p.text, ""))
		}
	}
	return b.String()
}

// filler fills in one page.
type filler struct {
	name string
	from Source
	page Page
}

// fill puts into a part what its markers ask for.
func (f *filler) fill(p *part) (err error) {
	if p.kind == quoted {
		return nil
	}
	if left := comment.FindString(marker.ReplaceAllString(perhaps.ReplaceAllString(p.text, "$1"), "")); left != "" {
		return fmt.Errorf("%s is no marker: there are %s", left, strings.ReplaceAll(within+"|"+blocks, "|", ", "))
	}
	text := perhaps.ReplaceAllStringFunc(p.text, func(found string) string {
		words := part{text: perhaps.FindStringSubmatch(found)[1]}
		if err == nil {
			err = f.markers(&words)
		}
		p.missing = append(p.missing, words.missing...)
		if words.absent() {
			return ""
		}
		p.asks, p.has = p.asks+words.asks, p.has+words.has
		return words.text
	})
	p.text = text
	return errors.Join(err, f.markers(p))
}

func (f *filler) markers(p *part) (err error) {
	p.text = marker.ReplaceAllStringFunc(p.text, func(found string) string {
		m := marker.FindStringSubmatch(found)
		if m[1] == "waiting" { // what is missing is known at the end
			return found
		}
		w, wrong := parse(m[2])
		if wrong == nil && p.kind != block && blockOf.MatchString(found) {
			wrong = errors.New("it stands on a line of its own")
		}
		var content string
		if wrong == nil {
			content, wrong = f.content(m[1], w)
		}
		yet := NotYet{}
		switch {
		case errors.As(wrong, &yet):
			p.asks++
			p.missing = append(p.missing, yet.Step)
			if content = yet.Error(); p.kind == row {
				content = "–" // as tables have it that are made
			}
		case wrong != nil && err == nil:
			err = fmt.Errorf("%s: %w", found, wrong)
		case figures.MatchString(m[1]):
			p.asks, p.has = p.asks+1, p.has+1
		}
		return content
	})
	return err
}

// content is what stands in a marker's place.
func (f *filler) content(kind string, w words) (string, error) {
	switch kind {
	case "printed":
		return printed(w, f.from)
	case "progress":
		measured, all, err := f.from.Progress(w.step)
		return progress(measured, all), errors.Join(err, w.only())
	case "paper", "effects":
		return document(kind, w, f.from)
	}
	return f.measured(kind, w)
}

// measured is what follows from a step's trials.
func (f *filler) measured(kind string, w words) (string, error) {
	if kind == "over" {
		points, err := f.from.Points(w.step)
		if err != nil {
			return "", err
		}
		svg, about, err := over(points, w)
		return f.add(svg, about, err)
	}
	rows, err := f.from.Rows(w.step)
	if err != nil {
		return "", err
	}
	var values []Value
	if item := w.options["paper"]; item != "" {
		if values, err = f.from.Papers(item); err != nil {
			return "", err
		}
		values = w.series(values)
	}
	switch kind {
	case "ranks":
		as, err := f.from.Papers(w.options["as"])
		if err != nil {
			return "", err
		}
		return ranks(rows, values, as, w)
	case "figure", "claim":
		return sentence(kind, rows, w)
	}
	if rows, err = w.filter(rows); err != nil {
		return "", err
	}
	if rows = each(rows, w.options["each"]); len(rows) == 0 {
		return "", NotYet{w.step} // no trial has come so far
	}
	switch kind {
	case "trials":
		return counts(rows), w.only()
	case "table":
		return table(rows, values, w)
	case "versus":
		return versus(rows, values, w)
	case "graph":
		return f.graphs(rows, w)
	}
	return f.add(picture(rows, values, w))
}

// add keeps a picture that could be drawn, and returns what shows it.
func (f *filler) add(svg, about string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	file := fmt.Sprintf("%s-%d.svg", f.name, len(f.page.Pictures)+1)
	f.page.Pictures[file] = svg
	return fmt.Sprintf("![%s](data/%s)", about, file), nil
}

// counts says how many trials there were, and what they were worth.
func counts(rows []data.Row) string {
	valid, suspect, failed := 0, 0, 0
	for _, r := range rows {
		switch {
		case r.Valid():
			valid++
		case r.State == "ok":
			suspect++
		default:
			failed++
		}
	}
	text := fmt.Sprintf("%d of %d trials are valid", valid, len(rows))
	if suspect > 0 {
		text += fmt.Sprintf(", %d suspect", suspect)
	}
	if failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	return text
}
