package mysql

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"skerry/internal/load"
)

// Column returns the type of field columns for values of size bytes.
type Column func(size int) string

// Blob holds any value, in a server's own storage engine.
func Blob(int) string { return "MEDIUMBLOB" }

type table struct {
	mu      sync.Mutex
	columns []string        // of fields, in order; set once
	has     map[string]bool // in lower case: columns' names have none
	quoted  string          // its name in statements
}

func (t *table) present(fields []string) []string {
	absent := func(f string) bool { return !t.has[strings.ToLower(f)] }
	if !slices.ContainsFunc(fields, absent) {
		return fields
	}
	return slices.DeleteFunc(slices.Clone(fields), absent)
}

type maker struct {
	column Column
	engine string
}

// table returns a table with at least the workload's columns. A maker creates missing ones; without a maker a
// missing table is load.ErrNotFound.
func (r *router) table(ctx context.Context, l *link, name string, m *maker) (*table, error) {
	r.mu.Lock()
	t := r.tables[name]
	if t == nil {
		t = &table{quoted: quote(name)}
		r.tables[name] = t
	}
	r.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.columns != nil {
		return t, nil
	}
	present, err := columns(ctx, l, name)
	if err != nil {
		return nil, err
	}
	if m != nil {
		present, err = m.make(ctx, l, name, present, r.settings)
	} else if len(present) == 0 {
		err = load.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	t.has = make(map[string]bool)
	for _, c := range present {
		t.has[strings.ToLower(c)] = true
	}
	t.columns = names(present, r.settings.prefix)
	return t, nil
}

// make makes a table, or the columns that it lacks, and returns its columns.
func (m *maker) make(ctx context.Context, l *link, name string, present []string, s settings) ([]string, error) {
	var add []string
	for i := range s.fields {
		f := fmt.Sprint(s.prefix, i)
		if !slices.ContainsFunc(present, func(c string) bool { return strings.EqualFold(c, f) }) {
			add = append(add, quote(f)+" "+m.column(s.size))
		}
	}
	switch {
	case len(present) == 0:
		if err := l.exec(ctx, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (%s VARBINARY(255) PRIMARY KEY, %s)%s",
			quote(name), Key, strings.Join(add, ", "), m.engine)); err != nil {
			return nil, fmt.Errorf("creating table %s: %w", name, err)
		}
	case len(add) > 0:
		err := l.exec(ctx, "ALTER TABLE "+quote(name)+" ADD COLUMN "+strings.Join(add, ", ADD COLUMN "))
		if err != nil && number(err) != errDupColumn {
			return nil, fmt.Errorf("adding columns to table %s: %w", name, err)
		}
	default:
		return present, nil
	}
	return columns(ctx, l, name)
}

func columns(ctx context.Context, l *link, name string) ([]string, error) {
	rows, err := l.query(ctx, "SHOW COLUMNS FROM "+quote(name))
	if number(err) == errNoTable {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the columns of table %s: %w", name, err)
	}
	var found []string
	for _, r := range rows {
		if !strings.EqualFold(r[0], Key) {
			found = append(found, r[0])
		}
	}
	return found, nil
}

// names returns columns as the workload calls its fields: servers keep the case of the definition (FIELD0).
func names(columns []string, prefix string) []string {
	fields := make([]string, len(columns))
	for i, c := range columns {
		fields[i] = c
		if n := len(prefix); len(c) > n && strings.EqualFold(c[:n], prefix) {
			fields[i] = prefix + c[n:]
		}
	}
	return fields
}
