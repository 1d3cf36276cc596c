package experiment

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/link"
	"skerry/internal/topology"
)

// traceColumns are the columns of a trace, with the units allowed in their names.
var traceColumns = map[string][]string{
	"time": {"s", "ms"}, "from": nil, "to": nil,
	"latency": {"ms", "us"}, "bandwidth": {"mbit", "kbit", "gbit"}, "loss": nil,
}

// maxTraceProblems bounds the reported mistakes: a wrong file has one in every line.
const maxTraceProblems = 20

// traceRow changes one direction of the links between two ends.
type traceRow struct {
	at       time.Duration
	from, to string
	spec     func(link.Quality) link.Quality
}

// openTrace opens the drift's CSV file.
func (e Experiment) openTrace() (*traceReader, error) {
	data, err := e.readFile(e.Drift.Trace)
	if err != nil {
		return nil, err
	}
	return &traceReader{src: strict.NewSource(e.Drift.Trace, string(data)), csv: csv.NewReader(strings.NewReader(string(data)))}, nil
}

// traceProfiles applies the drift's CSV file.
func (e Experiment) traceProfiles(t topology.Topology) (map[string]LinkProfile, strict.Problems) {
	r, err := e.openTrace()
	if err != nil {
		return nil, strict.Problems{{Path: "trace", Message: "read trace: " + err.Error(), Err: err,
			Hint: "give the path of a CSV file, relative to this file"}}
	}
	rows := r.readRows()
	l := newTimeline(t, e.Scale)
	for i, row := range rows {
		touched := false
		for _, d := range l.links {
			ab, ba := *d.AB, *d.BA
			if l.matches(d.a, row.from) && l.matches(d.b, row.to) {
				ab, touched = row.spec(ab), true
			}
			if l.matches(d.b, row.from) && l.matches(d.a, row.to) {
				ba, touched = row.spec(ba), true
			}
			d.changeAt(row.at, ab, ba)
		}
		if !touched {
			r.fail(r.lines[i], 1, "no link from %q to %q", row.from, row.to)
		}
		if len(r.problems) > maxTraceProblems {
			break
		}
	}
	return l.profiles(), r.problems
}

type traceReader struct {
	src      *strict.Source
	csv      *csv.Reader
	columns  map[string]column
	lines    []int // of the rows
	problems strict.Problems
	outages  strict.Problems // rows with a bandwidth of 0
}

type column struct {
	index int
	unit  string
}

func (r *traceReader) fail(line, col int, format string, args ...any) {
	r.problems = append(r.problems, strict.Problem{Pos: strict.Pos{Source: r.src, Line: line, Column: col},
		Message: fmt.Sprintf(format, args...)})
}

func (r *traceReader) readRows() []traceRow {
	r.csv.Comment, r.csv.TrimLeadingSpace = '#', true
	var rows []traceRow
	for {
		record, err := r.csv.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var parse *csv.ParseError
		if errors.As(err, &parse) {
			r.fail(parse.Line, parse.Column, "invalid CSV: %v", parse.Err)
			return nil
		}
		if err != nil {
			r.fail(1, 1, "invalid CSV: %v", err)
			return nil
		}
		if r.columns == nil {
			if r.parseHeader(record); len(r.problems) > 0 {
				return nil
			}
			continue
		}
		line, _ := r.csv.FieldPos(0)
		before := len(r.problems)
		row := r.parseRow(record)
		if n := len(rows); len(r.problems) == before && n > 0 && row.at < rows[n-1].at {
			r.fail(line, 1, "time goes back from %v to %v", rows[n-1].at, row.at)
		}
		if len(r.problems) > maxTraceProblems {
			return nil
		}
		if len(r.problems) == before {
			rows, r.lines = append(rows, row), append(r.lines, line)
		}
	}
	if n := len(r.outages); n > 0 {
		p := r.outages[0]
		if n > 1 {
			p.Message += fmt.Sprintf(" (also in %d more rows)", n-1)
		}
		p.Hint = "leave the cell empty for an outage, write loss 100%, and loss 0% in the row that ends the outage"
		r.problems = append(r.problems, p)
	}
	if len(rows) == 0 && len(r.problems) == 0 {
		r.fail(1, 1, "trace is empty: want a line with the columns, then one line per change")
	}
	return rows
}

func (r *traceReader) parseHeader(record []string) {
	r.columns = map[string]column{}
	for i, name := range record {
		name, suffix, _ := strings.Cut(strings.TrimSpace(name), "_")
		_, col := r.csv.FieldPos(i)
		units, known := traceColumns[name]
		switch {
		case !known:
			r.fail(1, col, "unknown column %q, want time, from, to, latency, bandwidth or loss", name)
		case suffix != "" && !slices.Contains(units, suffix):
			r.fail(1, col, "%q is not a unit of %s, want one of %v or cells with units", suffix, name, units)
		}
		r.columns[name] = column{i, suffix}
	}
	if _, ok := r.columns["time"]; !ok {
		r.fail(1, 1, "no column time")
	}
	if len(r.columns) < 2 {
		r.fail(1, 1, "no column with a change, want latency, bandwidth or loss")
	}
}

// cell returns the text of a column with its unit, "" if it is empty.
func (r *traceReader) cell(record []string, name string) string {
	c, ok := r.columns[name]
	if !ok || strings.TrimSpace(record[c.index]) == "" {
		return ""
	}
	return strings.TrimSpace(record[c.index]) + c.unit
}

func (r *traceReader) parseRow(record []string) traceRow {
	row := traceRow{from: r.cell(record, "from"), to: r.cell(record, "to")}
	check := func(name string, err error) {
		if err != nil {
			line, col := r.csv.FieldPos(r.columns[name].index)
			r.fail(line, col, "%s: %v", name, err)
		}
	}
	var err error
	row.at, err = unit.ParseDuration(r.cell(record, "time"))
	check("time", err)
	var latency, bandwidth, loss func(*link.Quality)
	if s := r.cell(record, "latency"); s != "" {
		v, err := unit.ParseDuration(s)
		check("latency", err)
		latency = func(q *link.Quality) { q.Latency = v }
	}
	if s := r.cell(record, "bandwidth"); s != "" {
		v, err := unit.ParseBandwidth(s)
		if errors.Is(err, unit.ErrNoBandwidth) {
			line, col := r.csv.FieldPos(r.columns["bandwidth"].index)
			r.outages = append(r.outages, strict.Problem{Pos: strict.Pos{Source: r.src, Line: line, Column: col},
				Message: "bandwidth must not be 0"})
		} else {
			check("bandwidth", err)
		}
		bandwidth = func(q *link.Quality) { q.Bandwidth = v }
	}
	if s := r.cell(record, "loss"); s != "" {
		v, err := unit.ParseFraction(s)
		check("loss", err)
		loss = func(q *link.Quality) { q.Loss, q.Burst = v, nil }
	}
	row.spec = func(q link.Quality) link.Quality {
		for _, set := range []func(*link.Quality){latency, bandwidth, loss} {
			if set != nil {
				set(&q)
			}
		}
		return q
	}
	return row
}
