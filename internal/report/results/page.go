// A template is a Markdown page and a text/template with these functions:
//
//	{{table "STEP" "rows=workload,scale" "columns=goodput,goodput/scale=1,read.p99:ms" "where=workload=a"}}
//
// The first argument names a step of the plan or an item of the documents' values. The others are options:
//
//	table, picture, graph, over,
//	ranks, versus                 of a step's trials, on a line of their own; each=PREFIX makes a row for
//	                              each NAME of the figures PREFIX.NAME.FIGURE
//	figure, claim, trials         of a step's trials, within a sentence
//	paper, effects                a document's table, and its effect sizes recomputed
//	printed                       a document's value, within a sentence
//	progress                      number of measured steps of a page, within a sentence
//	waiting                       the command that measures the missing steps of the section: {{waiting "findings"}}
//	words                         a part of a sentence with figures, omitted if none is measured: {{words ": %s ms" (figure ...)}}
//	rows                          a table for range: {{range rows "STEP | NAME" "fhc-latency-redis | Redis"}}
//
// Means are over the trials of a cell that count (Row.Counts). Unmeasured parts are omitted (parts.go):
//
//	a row, an item, a paragraph   if none of its figures is measured; missing figures of others say so
//	a whole table, a lead-in      if nothing remains of it, or of the part that it introduces
//	a section with its heading    if it has no measured figures and no waiting call
package results

import (
	"fmt"
	"strings"
	"text/template"
)

type notMeasuredError struct{ Step string }

func (n notMeasuredError) Error() string { return "not measured yet" }

type pageSource interface {
	// Rows are the trials of a step, Points their figures over time. The error may be
	// notMeasuredError.
	Rows(step string) ([]Row, error)
	Points(step string) ([]Point, error)
	// Papers are the values of a figure or table of a document.
	Papers(item string) ([]DocumentValue, error)
	// Missing returns how to measure the steps without data.
	Missing(steps []string) (MissingSteps, error)
	// Progress returns the number of measured steps of a page, and of all its steps.
	Progress(page string) (measured, all int, err error)
}

type filledPage struct {
	Text []byte
	// Pictures are SVG documents by file name.
	Pictures map[string]string
	// Calls are the function calls of the template in order.
	Calls []functionCall
}

type functionCall struct {
	Function, Step string
	Options        []string
	// Content is the result, also of an omitted part.
	Content string
}

// fillPage renders a page. name begins the names of its pictures.
func fillPage(name string, text []byte, from pageSource) (filledPage, error) {
	f := filler{name: name, from: from, page: filledPage{Pictures: map[string]string{}}}
	t, err := template.New(name).Funcs(f.templateFunctions()).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return f.page, fmt.Errorf("parse template: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, nil); err != nil {
		return f.page, fmt.Errorf("execute template: %w", err)
	}
	if i := strings.Index(b.String(), "<!--"); i >= 0 {
		return f.page, fmt.Errorf("page %s: %.40q: comments are not allowed; call functions as {{table ...}}", name, b.String()[i:])
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

type filler struct {
	name    string
	from    pageSource
	page    filledPage
	results []callResult // by the number in their token
}

func (f *filler) evaluate(kind string, w arguments) (string, error) {
	switch kind {
	case "printed":
		return printedValue(w, f.from)
	case "waiting": // filled by fillWaiting
		return "", nil
	case "progress":
		measured, all, err := f.from.Progress(w.step)
		return describeProgress(measured, all), err
	case "paper", "effects":
		return renderDocument(kind, w, f.from)
	}
	return f.evaluateTrials(kind, w)
}

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
		return "", notMeasuredError{w.step} // no trial yet
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

func (f *filler) addPicture(svg, about string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	file := fmt.Sprintf("%s-%d.svg", f.name, len(f.page.Pictures)+1)
	f.page.Pictures[file] = svg
	return fmt.Sprintf("![%s](data/%s)", about, file), nil
}

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
