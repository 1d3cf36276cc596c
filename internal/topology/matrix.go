package topology

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"skerry/internal/strict"
)

// table is a square of quantities between sites; an empty cell is absent.
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

// readTable reads a table in CSV:
//
//	ms,        Melbourne, Sydney
//	Melbourne, 0,         189
//	Sydney,    189,       0
//
// src is what messages point into, nil for the text at path of the topology itself. parse
// reads a cell. A cell without a unit gets that of the corner, or unit where the
// corner is empty. Cells of the diagonal are 0 or empty. mirrored refuses halves that differ.
func readTable[T ~int64](src *strict.Source, path, text, unit string, parse func(string) (T, error), mirrored bool) (*table[T], error) {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	if head, _, _ := strings.Cut(text, "\n"); !strings.Contains(head, ",") && strings.Contains(head, ";") {
		r.Comma = ';' // as spreadsheets write it where the comma is the decimal sign
	}
	r.TrimLeadingSpace, r.Comment, r.FieldsPerRecord = true, '#', -1
	t := &table[T]{cells: map[[2]string]T{}}
	var problems strict.Problems
	fail := func(column int, format string, args ...any) {
		line, col := r.FieldPos(column)
		problems = append(problems, strict.Problem{Path: path, Pos: strict.Pos{Source: src, Line: line, Column: col}, Message: fmt.Sprintf(format, args...)})
	}
	type cell struct{ row, col int }
	where := map[[2]string]cell{}
	rows := 0
	for ; ; rows++ {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, strict.Problems{{Path: path, Pos: csvPos(src, err), Message: "this is no CSV: " + err.Error(), Err: err}}
		}
		for i := range record {
			record[i] = strings.TrimSpace(record[i])
		}
		if rows == 0 {
			if record[0] != "" {
				unit = record[0]
			}
			t.sites = record[1:]
			seen := map[string]bool{}
			for i, s := range t.sites {
				if s == "" || seen[s] {
					fail(i+1, "column %d names %q, want a site that no other column names", i+2, s)
				}
				seen[s] = true
			}
			if len(problems) > 0 {
				return nil, problems
			}
			continue
		}
		if rows > len(t.sites) {
			fail(0, "row %q is one too many: the matrix is not square, its first line names %d sites", record[0], len(t.sites))
			continue
		}
		from := t.sites[rows-1]
		if record[0] != from {
			fail(0, "row %d is %q but column %d is %q: rows and columns name the sites in the same order", rows, record[0], rows, from)
			continue
		}
		if len(record)-1 != len(t.sites) {
			fail(len(record)-1, "row %q has %d cells for %d sites: the matrix is not square", from, len(record)-1, len(t.sites))
			continue
		}
		for i, s := range record[1:] {
			to := t.sites[i]
			if s == "" || to == from && isZero(s) {
				continue
			}
			if to == from {
				fail(i+1, "the cell from %s to itself is %q, want 0 or nothing", from, s)
				continue
			}
			if isBare(s) {
				s += unit
			}
			v, err := parse(s)
			if err != nil {
				fail(i+1, "from %s to %s: %v", from, to, err)
				continue
			}
			key, back := [2]string{from, to}, [2]string{to, from}
			if old, ok := t.cells[back]; ok && mirrored && old != v {
				fail(i+1, "from %s to %s is %s, but the way back (row %d) says otherwise: a round trip is the same from both ends", from, to, s, where[back].row)
			}
			t.cells[key], where[key] = v, cell{rows, i + 1}
		}
	}
	if rows == 0 {
		return nil, strict.Problems{{Path: path, Pos: strict.Pos{Source: src, Line: 1, Column: 1}, Message: "the matrix is empty"}}
	}
	if rows-1 < len(t.sites) && len(problems) == 0 {
		problems = append(problems, strict.Problem{Path: path, Pos: strict.Pos{Source: src, Line: 1, Column: 1},
			Message: fmt.Sprintf("the matrix is not square: %d columns, %d rows", len(t.sites), rows-1)})
	}
	for key, v := range t.cells {
		back := [2]string{key[1], key[0]}
		if _, ok := t.cells[back]; !ok {
			t.cells[back] = v
		}
	}
	return t, problems.AsError()
}

func csvPos(src *strict.Source, err error) strict.Pos {
	var p *csv.ParseError
	if errors.As(err, &p) {
		return strict.Pos{Source: src, Line: p.Line, Column: p.Column}
	}
	return strict.Pos{Source: src}
}

func isBare(s string) bool { _, err := strconv.ParseFloat(s, 64); return err == nil }
func isZero(s string) bool { f, err := strconv.ParseFloat(s, 64); return err == nil && f == 0 }
