// Package page makes a page of results from its template: a page of Markdown, which is a text/template with these functions:
//
//	{{table "STEP" "rows=workload,scale" "columns=goodput,goodput/scale=1,read.p99:ms" "where=workload=a"}}
//
// The first argument names a step of the plan or an item of the documents' values, the others are options:
//
//	table, picture, graph, over,
//	ranks, versus                 of a step's trials, on a line of their own; with each=PREFIX a row for
//	                              each NAME of their figures PREFIX.NAME.FIGURE
//	figure, claim, trials         of a step's trials, within a sentence
//	paper, effects                a document's table as it is, and its effect sizes recomputed
//	printed                       a document's value, within a sentence
//	progress                      how many steps of a page of the plan are measured, within a sentence
//	waiting                       which command measures what the section around it lacks: {{waiting "findings"}}
//	words                         a part of a sentence around figures, left out if none is measured: {{words ": %s ms" (figure ...)}}
//	rows                          a table for range: {{range rows "STEP | NAME" "fhc-latency-redis | Redis"}}
//
// Means are over the trials of a cell that count (Row.Counts). What was not measured yet is left out (absent.go):
//
//	a row, an item, a paragraph   where none of its figures is there; where some are, the others say so
//	a whole table, a lead-in      where nothing of it, or of what it leads to, is left
//	a section with its heading    where it asks for figures and has none, unless it says so itself (waiting)
package results

import (
	"fmt"
	"strings"
	"text/template"
)

// NotMeasuredError is the error of a step that is in the plan and was not measured yet.
type NotMeasuredError struct{ Step string }

func (n NotMeasuredError) Error() string { return "not measured yet" }

// PageSource reads what pages follow from.
type PageSource interface {
	// Rows are the trials of a step, Points what they did over time. The error may be NotYet.
	Rows(step string) ([]Row, error)
	Points(step string) ([]Point, error)
	// Papers are the values of a figure or table of a document.
	Papers(item string) ([]DocumentValue, error)
	// Missing tells how steps are measured that were not yet.
	Missing(steps []string) (MissingSteps, error)
	// Progress is how many of the steps of a page of the plan are measured.
	Progress(page string) (measured, all int, err error)
}

// FilledPage is a page filled in.
type FilledPage struct {
	Text []byte
	// Pictures are SVG documents by their file's name.
	Pictures map[string]string
	// Calls are the template's calls of functions, in their order.
	Calls []Call
}

// Call is a call of a function by a template.
type Call struct {
	Function, Step string
	Options        []string
	// Content is the result, also of a part that is left out.
	Content string
}

// FillPage makes a page from its template. name begins the names of its pictures.
func FillPage(name string, text []byte, from PageSource) (FilledPage, error) {
	f := filler{name: name, from: from, page: FilledPage{Pictures: map[string]string{}}}
	t, err := template.New(name).Funcs(f.templateFunctions()).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return f.page, fmt.Errorf("parsing the template of a page: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, nil); err != nil {
		return f.page, fmt.Errorf("filling the template of a page: %w", err)
	}
	if i := strings.Index(b.String(), "<!--"); i >= 0 {
		return f.page, fmt.Errorf("page %s: %.40q: a page has no comments; a template calls functions as {{table ...}}", name, b.String()[i:])
	}
	all := splitParts(b.String())
	for i := range all {
		if err := f.resolveTokens(&all[i]); err != nil {
			return f.page, fmt.Errorf("page %s: %w", name, err)
		}
	}
	omitMissing(all)
	if err := f.fillWaiting(all); err != nil {
		return f.page, fmt.Errorf("page %s: %w", name, err)
	}
	f.page.Text = joinParts(all)
	return f.page, nil
}

// filler fills in one page.
type filler struct {
	name    string
	from    PageSource
	page    FilledPage
	results []callResult // by the number in their token
}

// evaluate is the result of a function.
func (f *filler) evaluate(kind string, w arguments) (string, error) {
	switch kind {
	case "printed":
		return printedValue(w, f.from)
	case "waiting": // what is missing is known at the end
		return "", nil
	case "progress":
		measured, all, err := f.from.Progress(w.step)
		return describeProgress(measured, all), err
	case "paper", "effects":
		return renderDocument(kind, w, f.from)
	}
	return f.evaluateTrials(kind, w)
}

// evaluateTrials is what follows from a step's trials.
func (f *filler) evaluateTrials(kind string, w arguments) (string, error) {
	if kind == "over" {
		points, err := f.from.Points(w.step)
		if err != nil {
			return "", err
		}
		svg, about, err := drawOverTime(points, w)
		return f.addPicture(svg, about, err)
	}
	rows, err := f.from.Rows(w.step)
	if err != nil {
		return "", err
	}
	var values []DocumentValue
	if item := w.options["paper"]; item != "" {
		if values, err = f.from.Papers(item); err != nil {
			return "", err
		}
		values = w.filterSeries(values)
	}
	switch kind {
	case "ranks":
		as, err := f.from.Papers(w.options["as"])
		if err != nil {
			return "", err
		}
		return renderRanks(rows, values, as, w)
	case "figure", "claim":
		return renderSentence(kind, rows, w)
	}
	if rows, err = w.filterRows(rows); err != nil {
		return "", err
	}
	if rows = splitRows(rows, w.options["each"]); len(rows) == 0 {
		return "", NotMeasuredError{w.step} // no trial has come so far
	}
	switch kind {
	case "trials":
		return summarizeTrials(rows), nil
	case "table":
		return renderTable(rows, values, w)
	case "versus":
		return renderVersus(rows, values, w)
	case "graph":
		return f.drawGraphs(rows, w)
	}
	return f.addPicture(drawPicture(rows, values, w))
}

// addPicture keeps a picture that could be drawn, and returns what shows it.
func (f *filler) addPicture(svg, about string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	file := fmt.Sprintf("%s-%d.svg", f.name, len(f.page.Pictures)+1)
	f.page.Pictures[file] = svg
	return fmt.Sprintf("![%s](data/%s)", about, file), nil
}

// summarizeTrials says how many trials there were, and what they were worth.
func summarizeTrials(rows []Row) string {
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
