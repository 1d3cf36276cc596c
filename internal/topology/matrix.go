package topology

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"skerry/internal/base/strict"
)

// table is a square matrix of quantities between sites. Empty cells are absent.
type table[T ~int64] struct {
	sites []string
	cells map[[2]string]T // from row to column
}

// get returns the cell from one site to another.
func (t *table[T]) get(from, to string) (T, bool) {
	if t == nil {
		return 0, false
	}
	v, ok := t.cells[[2]string{from, to}]
	return v, ok
}

func (t *table[T]) names() []string {
	if t == nil {
		return nil
	}
	return t.sites
}

// tableFormat describes how to parse a table.
type tableFormat[T ~int64] struct {
	// src is the CSV file that problems point into; nil if the topology contains the text at path.
	src  *strict.Source
	path string
	// unit applies to cells without a unit if the corner gives none.
	unit  string
	parse func(string) (T, error)
	// mirrored rejects halves that differ, or averages them if average is set.
	mirrored, average bool
}

// parseTable parses a table in CSV. Cells of the diagonal are 0 or empty.
//
//	ms,        Melbourne, Sydney
//	Melbourne, 0,         189
//	Sydney,    189,       0
func (f tableFormat[T]) parseTable(text string) (*table[T], strict.Problems) {
	c := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	if head, _, _ := strings.Cut(text, "\n"); !strings.Contains(head, ",") && strings.Contains(head, ";") {
		c.Comma = ';' // as spreadsheets write it where the comma is the decimal sign
	}
	c.TrimLeadingSpace, c.Comment, c.FieldsPerRecord = true, '#', -1
	r := &tableReader[T]{tableFormat: f, csv: c, rowOf: map[[2]string]int{}}
	r.cells = map[[2]string]T{}
	for {
		record, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			var p *csv.ParseError
			if !errors.As(err, &p) {
				p = &csv.ParseError{Line: 1, Column: 1, Err: err}
			}
			r.failAt(p.Line, p.Column, "invalid CSV: %v", p.Err)
			return nil, r.problems
		}
		for i := range record {
			record[i] = strings.TrimSpace(record[i])
		}
		if r.rows++; r.rows > 1 {
			r.readRow(record)
		} else if r.readHeader(record); len(r.problems) > 0 {
			return nil, r.problems
		}
	}
	switch {
	case r.rows == 0:
		r.failAt(1, 1, "the matrix is empty")
	case r.rows <= len(r.sites) && len(r.problems) == 0:
		r.failAt(1, 1, "the matrix is not square: %d columns, %d rows", len(r.sites), r.rows-1)
	}
	if n := len(r.differing); n > 0 {
		p := r.differing[0]
		if n > 1 {
			p.Message += fmt.Sprintf(" (%d more pairs differ)", n-1)
		}
		p.Hint = "correct one of the cells, leave one half empty, or set average: true next to latency"
		r.problems = append(r.problems, p)
	}
	r.fillMirrored()
	return &r.table, r.problems
}

// tableReader holds a table under construction.
type tableReader[T ~int64] struct {
	tableFormat[T]
	table[T]
	csv      *csv.Reader
	rows     int               // rows read, including the header
	rowOf    map[[2]string]int // row of each cell
	problems strict.Problems
	// corner is the problem of an invalid unit in the corner. It is reported when a cell needs the unit.
	corner *strict.Problem
	// differing holds cells that differ from the opposite direction.
	differing strict.Problems
}

func (r *tableReader[T]) failAt(line, column int, format string, args ...any) {
	r.problems = append(r.problems, strict.Problem{
		Path: r.path, Pos: strict.Pos{Source: r.src, Line: line, Column: column}, Message: fmt.Sprintf(format, args...),
	})
}

func (r *tableReader[T]) fail(field int, format string, args ...any) {
	r.problems = append(r.problems, r.problem(field, format, args...))
}

func (r *tableReader[T]) problem(field int, format string, args ...any) strict.Problem {
	line, column := r.csv.FieldPos(field)
	return strict.Problem{Path: r.path, Pos: strict.Pos{Source: r.src, Line: line, Column: column}, Message: fmt.Sprintf(format, args...)}
}

func (r *tableReader[T]) readHeader(record []string) {
	if _, err := r.parse("1" + record[0]); err == nil {
		r.unit = record[0]
	} else if record[0] != "" {
		p := r.problem(0, "the corner has %q, which is not a unit of the cells", record[0])
		p.Hint = fmt.Sprintf("write %s, or leave it empty: cells without a unit are then in %s", r.unit, r.unit)
		r.corner = &p
	}
	r.sites = record[1:]
	seen := map[string]bool{}
	for i, s := range r.sites {
		if s == "" || seen[s] {
			r.fail(i+1, "column %d names %q, want a site that no other column names", i+2, s)
		}
		seen[s] = true
	}
}

func (r *tableReader[T]) readRow(record []string) {
	n := r.rows - 1
	if n > len(r.sites) {
		r.fail(0, "extra row %q: the matrix is not square, its header names %d sites", record[0], len(r.sites))
		return
	}
	from := r.sites[n-1]
	switch {
	case record[0] != from:
		r.fail(0, "row %d is %q but column %d is %q: rows and columns name the sites in the same order", n, record[0], n, from)
	case len(record)-1 != len(r.sites):
		r.fail(len(record)-1, "row %q has %d cells for %d sites: the matrix is not square", from, len(record)-1, len(r.sites))
	default:
		for i, text := range record[1:] {
			r.readCell(i+1, from, r.sites[i], text)
		}
	}
}

func (r *tableReader[T]) readCell(field int, from, to, text string) {
	number, err := strconv.ParseFloat(text, 64)
	bare := err == nil
	switch {
	case text == "" || from == to && bare && number == 0:
		return
	case from == to:
		r.fail(field, "the cell from %s to itself is %q, want 0 or nothing", from, text)
		return
	case bare && r.corner != nil:
		r.problems = append(r.problems, *r.corner)
		r.corner, r.unit = nil, "" // once
		return
	case bare && r.unit == "":
		return
	case bare:
		text += r.unit
	}
	v, err := r.parse(text)
	if err != nil {
		r.fail(field, "from %s to %s: %v", from, to, err)
		return
	}
	if back := [2]string{to, from}; r.mirrored && r.rowOf[back] > 0 && r.cells[back] != v {
		if r.average {
			v = (v + r.cells[back]) / 2
			r.cells[back] = v
		} else {
			r.differing = append(r.differing, r.problem(field,
				"%s to %s is %s, but the opposite direction (row %d) is %v: round-trip times must agree",
				from, to, text, r.rowOf[back], r.cells[back]))
		}
	}
	r.cells[[2]string{from, to}], r.rowOf[[2]string{from, to}] = v, r.rows-1
}

// fillMirrored copies cells of one half into empty cells of the other half.
func (r *tableReader[T]) fillMirrored() {
	for key := range r.rowOf {
		back := [2]string{key[1], key[0]}
		if r.rowOf[back] == 0 {
			r.cells[back] = r.cells[key]
		}
	}
}
