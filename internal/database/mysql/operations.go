package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"

	"skerry/internal/load"
)

// Read reads a row, or some of its columns. Columns that the table lacks are skipped.
func (c *Client) Read(ctx context.Context, table, key string, fields []string, dst []load.Field) ([]load.Field, error) {
	l, err := c.beginOperation(ctx, false)
	if err != nil {
		return dst, err
	}
	before := len(dst)
	if dst, err = c.readRow(ctx, l, table, key, fields, dst); err != nil {
		return dst[:before], c.endOperation(ctx, l, err)
	}
	return dst, nil
}

func (c *Client) readRow(ctx context.Context, l *link, table, key string, fields []string, dst []load.Field) ([]load.Field, error) {
	fields, from, err := c.beginSelect(ctx, l, table, fields)
	if err != nil {
		return dst, err
	}
	c.text = append(append(c.text, from...), " WHERE "+Key+" = ?"...)
	rows, err := c.query(ctx, l, l.bind(key)...)
	if err != nil {
		return dst, err
	}
	l.fit(len(fields) + 1)
	if err := rows.Next(l.row); err != nil {
		if err := errors.Join(ignoreEOF(err), rows.Close()); err != nil {
			return dst, err
		}
		return dst, load.ErrNotFound
	}
	// The driver reuses its buffer when the end of the rows is read.
	c.values = c.values[:0]
	for _, v := range l.row[1:] {
		b, _ := v.([]byte)
		c.values = append(c.values, b...)
	}
	at := 0
	for i, f := range fields {
		b, there := l.row[i+1].([]byte)
		if !there {
			continue // NULL
		}
		dst = append(dst, load.Field{Name: f, Value: c.values[at : at+len(b) : at+len(b)]})
		at += len(b)
	}
	return dst, rows.Close()
}

// beginSelect begins a SELECT of the fields, all if none is named.
func (c *Client) beginSelect(ctx context.Context, l *link, table string, fields []string) ([]string, string, error) {
	t, err := c.table(ctx, l, table)
	if err != nil {
		return nil, "", err
	}
	if len(fields) == 0 {
		fields = t.columns
	} else {
		fields = t.present(fields)
	}
	c.text = append(c.text[:0], "SELECT "+Key...)
	for _, f := range fields {
		c.text = append(c.text, ',')
		c.text = appendQuoted(c.text, f)
	}
	c.text = append(c.text, " FROM "...)
	return fields, t.quoted, nil
}

func (c *Client) query(ctx context.Context, l *link, args ...driver.NamedValue) (driver.Rows, error) {
	s, err := l.statement(ctx, c.text)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(context.WithoutCancel(ctx), args)
}

// Scan visits rows in byte order of their keys.
func (c *Client) Scan(
	ctx context.Context, table, start string, count int, fields []string, visit func(key string, fields []load.Field),
) (int, error) {
	l, err := c.beginOperation(ctx, false)
	if err != nil {
		return 0, err
	}
	n, err := c.scanRows(ctx, l, table, start, count, fields, visit)
	if errors.Is(err, load.ErrNotFound) {
		return 0, nil // not even a table
	}
	return n, c.endOperation(ctx, l, err)
}

func (c *Client) scanRows(
	ctx context.Context, l *link, table, start string, count int, fields []string, visit func(string, []load.Field),
) (n int, err error) {
	fields, from, err := c.beginSelect(ctx, l, table, fields)
	if err != nil {
		return 0, err
	}
	c.text = append(append(c.text, from...), " WHERE "+Key+" >= ? ORDER BY "+Key+" LIMIT ?"...)
	rows, err := c.query(ctx, l, l.bind(start, int64(count))...)
	if err != nil {
		return 0, err
	}
	l.fit(len(fields) + 1)
	var record []load.Field
	for {
		if err := rows.Next(l.row); err != nil {
			return n, errors.Join(ignoreEOF(err), rows.Close())
		}
		n++
		if visit == nil {
			continue
		}
		record = record[:0]
		for i, f := range fields {
			if b, there := l.row[i+1].([]byte); there {
				record = append(record, load.Field{Name: f, Value: b})
			}
		}
		key, _ := l.row[0].([]byte)
		visit(string(key), record)
	}
}

// Update writes columns of a row.
func (c *Client) Update(ctx context.Context, name, key string, values []load.Field) error {
	return c.runWrite(ctx, name, func(l *link, t *table) []driver.NamedValue {
		c.text = append(append(append(c.text[:0], "UPDATE "...), t.quoted...), " SET "...)
		args := l.bind()
		for i, v := range values {
			if i > 0 {
				c.text = append(c.text, ',')
			}
			c.text = append(appendQuoted(c.text, v.Name), "=?"...)
			args = append(args, driver.NamedValue{Ordinal: i + 1, Value: v.Value})
		}
		c.text = append(c.text, " WHERE "+Key+" = ?"...)
		l.args = append(args, driver.NamedValue{Ordinal: len(values) + 1, Value: key})
		return l.args
	})
}

// Insert writes a row and replaces an existing one with that key.
func (c *Client) Insert(ctx context.Context, name, key string, values []load.Field) error {
	c.one[0] = load.Record{Key: key, Values: values}
	return c.replace(ctx, name, c.one[:])
}

// maxParameters is the most parameters that a MySQL statement can have.
const maxParameters = 1<<16 - 1

// InsertAll implements load.BulkClient: one statement writes rows of the same columns, up to the parameter limit.
func (c *Client) InsertAll(ctx context.Context, name string, records []load.Record) error {
	for len(records) > 0 {
		n := 1
		for fit := maxParameters / (1 + len(records[0].Values)); n < min(fit, len(records)) && sameFields(records[0], records[n]); n++ {
		}
		if err := c.replace(ctx, name, records[:n]); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

func sameFields(a, b load.Record) bool {
	return slices.EqualFunc(a.Values, b.Values, func(a, b load.Field) bool { return a.Name == b.Name })
}

func (c *Client) replace(ctx context.Context, name string, records []load.Record) error {
	return c.runWrite(ctx, name, func(l *link, t *table) []driver.NamedValue {
		c.text = append(append(append(c.text[:0], "REPLACE INTO "...), t.quoted...), " ("+Key...)
		for _, v := range records[0].Values {
			c.text = append(c.text, ',')
			c.text = appendQuoted(c.text, v.Name)
		}
		c.text = append(c.text, ") VALUES "...)
		args := l.bind()
		for i, r := range records {
			if i > 0 {
				c.text = append(c.text, ',')
			}
			c.text = append(c.text, "(?"...)
			args = append(args, driver.NamedValue{Ordinal: len(args) + 1, Value: r.Key})
			for _, v := range r.Values {
				c.text = append(c.text, ",?"...)
				args = append(args, driver.NamedValue{Ordinal: len(args) + 1, Value: v.Value})
			}
			c.text = append(c.text, ')')
		}
		l.args = args
		return args
	})
}

// Delete removes a row.
func (c *Client) Delete(ctx context.Context, name, key string) error {
	return c.runWrite(ctx, name, func(l *link, t *table) []driver.NamedValue {
		c.text = append(append(append(c.text[:0], "DELETE FROM "...), t.quoted...), " WHERE "+Key+" = ?"...)
		return l.bind(key)
	})
}

// runWrite runs a write whose text the function appends to c.text. No matching row is load.ErrNotFound.
func (c *Client) runWrite(ctx context.Context, name string, text func(*link, *table) []driver.NamedValue) error {
	l, err := c.beginOperation(ctx, true)
	if err != nil {
		return err
	}
	t, err := c.table(ctx, l, name)
	if err != nil {
		return c.endOperation(ctx, l, asUnsent(l, err))
	}
	args := text(l, t)
	s, err := l.statement(ctx, c.text)
	if err != nil {
		return c.endOperation(ctx, l, asUnsent(l, err))
	}
	done, err := s.ExecContext(context.WithoutCancel(ctx), args)
	if err != nil {
		return c.endOperation(ctx, l, err)
	}
	if n, err := done.RowsAffected(); err == nil && n == 0 {
		return load.ErrNotFound
	}
	return nil
}

func (c *Client) DropTable(ctx context.Context, table string) error {
	l, err := c.beginOperation(ctx, true)
	if err != nil {
		return err
	}
	return c.endOperation(ctx, l, l.exec(ctx, "DROP TABLE IF EXISTS "+quote(table)))
}

// Count counts the rows of a table.
func (c *Client) Count(ctx context.Context, table string) (int64, error) {
	l, err := c.beginOperation(ctx, false)
	if err != nil {
		return 0, err
	}
	t, err := c.table(ctx, l, table)
	if err != nil {
		return 0, c.endOperation(ctx, l, err)
	}
	c.text = append(append(c.text[:0], "SELECT COUNT(*) FROM "...), t.quoted...)
	rows, err := c.query(ctx, l)
	if err != nil {
		return 0, c.endOperation(ctx, l, err)
	}
	l.fit(1)
	err = rows.Next(l.row)
	n, _ := l.row[0].(int64)
	return n, c.endOperation(ctx, l, errors.Join(err, rows.Close()))
}

func (l *link) fit(columns int) {
	if cap(l.row) < columns {
		l.row = make([]driver.Value, columns)
	}
	l.row = l.row[:columns]
}

func appendQuoted(b []byte, name string) []byte {
	if strings.Contains(name, "`") {
		return append(b, quote(name)...)
	}
	return append(append(append(b, '`'), name...), '`')
}
