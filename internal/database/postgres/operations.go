package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"skerry/internal/load"
)

// binaryFormat requests and sends values as they are: bytes, and numbers of eight bytes.
var binaryFormat = []int16{1}

// Kinds of statements.
const (
	kindRead   = 'r'
	kindScan   = 's'
	kindInsert = 'i'
	kindUpdate = 'u'
	kindDelete = 'd'
)

const keyColumn = "ycsb_key"

// statement returns the prepared statement of a kind for a table and fields.
func (c *client) statement(s session, kind byte, table string, n int, name func(int) string) (*statement, error) {
	if table == "" {
		table = c.table
	}
	c.key = append(append(c.key[:0], kind), table...)
	for i := range n {
		c.key = append(append(c.key, 0), name(i)...)
	}
	if st, ok := s.statements[string(c.key)]; ok {
		return st, nil
	}
	fields := make([]string, n)
	for i := range fields {
		fields[i] = pgx.Identifier{name(i)}.Sanitize()
	}
	prepared, err := s.conn.Prepare(context.Background(), fmt.Sprint("skerry", len(s.statements)),
		text(kind, pgx.Identifier{table}.Sanitize(), fields), nil)
	if err != nil {
		return nil, err
	}
	st := &statement{StatementDescription: prepared}
	for _, f := range prepared.Fields {
		st.names = append(st.names, f.Name)
	}
	s.statements[string(c.key)] = st
	return st, nil
}

func text(kind byte, table string, fields []string) string {
	columns := "*"
	if len(fields) > 0 {
		columns = keyColumn + ", " + strings.Join(fields, ", ")
	}
	switch kind {
	case kindRead:
		return "SELECT " + columns + " FROM " + table + " WHERE " + keyColumn + " = $1"
	case kindScan:
		return "SELECT " + columns + " FROM " + table + " WHERE " + keyColumn + " >= $1 ORDER BY " + keyColumn + " LIMIT $2::bigint"
	case kindDelete:
		return "DELETE FROM " + table + " WHERE " + keyColumn + " = $1"
	}
	var sets, parameters []string
	for i, f := range fields {
		parameters = append(parameters, fmt.Sprint("$", i+2))
		if kind == kindUpdate {
			sets = append(sets, fmt.Sprintf("%s = $%d", f, i+2))
		} else {
			sets = append(sets, f+" = EXCLUDED."+f)
		}
	}
	if kind == kindUpdate {
		return "UPDATE " + table + " SET " + strings.Join(sets, ", ") + " WHERE " + keyColumn + " = $1"
	}
	if len(fields) == 0 {
		return "INSERT INTO " + table + " (" + keyColumn + ") VALUES ($1) ON CONFLICT DO NOTHING"
	}
	return "INSERT INTO " + table + " (" + columns + ") VALUES ($1, " + strings.Join(parameters, ", ") +
		") ON CONFLICT (" + keyColumn + ") DO UPDATE SET " + strings.Join(sets, ", ")
}

// run runs a statement. Rows are valid only inside visit.
func (c *client) run(s session, st *statement, visit func(values [][]byte)) (pgconn.CommandTag, error) {
	result := s.conn.ExecStatement(context.Background(), st.StatementDescription, c.values, binaryFormat, binaryFormat)
	for result.NextRow() {
		if visit != nil {
			visit(result.Values())
		}
	}
	return result.Close()
}

func (c *client) runKeyed(key string) {
	c.values = append(c.values[:0], []byte(key))
}

func (c *client) Read(ctx context.Context, table, key string, fields []string, dst []load.Field) ([]load.Field, error) {
	s, err := c.beginOperation(ctx, true)
	if err != nil {
		return dst, err
	}
	st, err := c.statement(s, kindRead, table, len(fields), func(i int) string { return fields[i] })
	if err != nil {
		return dst, s.endOperation(err)
	}
	found := false
	c.runKeyed(key)
	c.arena = c.arena[:0]
	_, err = c.run(s, st, func(values [][]byte) {
		found = true
		dst = c.record(dst, st, values)
	})
	switch err = s.endOperation(err); {
	case err != nil:
		return dst, err
	case !found:
		return dst, load.ErrNotFound
	}
	return dst, nil
}

// record copies a row's fields without the key in the first column and without nulls.
func (c *client) record(dst []load.Field, st *statement, values [][]byte) []load.Field {
	for i, v := range values[1:] {
		if v == nil {
			continue
		}
		from := len(c.arena)
		c.arena = append(c.arena, v...)
		dst = append(dst, load.Field{Name: st.names[i+1], Value: c.arena[from:len(c.arena):len(c.arena)]})
	}
	return dst
}

func (c *client) Scan(ctx context.Context, table, start string, count int, fields []string, visit func(string, []load.Field)) (int, error) {
	s, err := c.beginOperation(ctx, true)
	if err != nil {
		return 0, err
	}
	st, err := c.statement(s, kindScan, table, len(fields), func(i int) string { return fields[i] })
	if err != nil {
		return 0, s.endOperation(err)
	}
	var record []load.Field
	seen := 0
	c.runKeyed(start)
	c.values = append(c.values, binary.BigEndian.AppendUint64(c.number[:0], uint64(count)))
	_, err = c.run(s, st, func(values [][]byte) {
		seen++
		if visit != nil {
			c.arena = c.arena[:0]
			record = c.record(record[:0], st, values)
			visit(string(values[0]), record)
		}
	})
	return seen, s.endOperation(err)
}

func (c *client) setStatement(ctx context.Context, kind byte, table, key string, values []load.Field) (int64, error) {
	s, err := c.beginOperation(ctx, false)
	if err != nil {
		return 0, err
	}
	st, err := c.statement(s, kind, table, len(values), func(i int) string { return values[i].Name })
	if err != nil {
		return 0, s.endOperation(err)
	}
	c.runKeyed(key)
	c.bind(values)
	tag, err := c.run(s, st, nil)
	return tag.RowsAffected(), s.endOperation(err)
}

func (c *client) bind(values []load.Field) {
	for _, f := range values {
		if f.Value == nil {
			f.Value = []byte{} // nil is null
		}
		c.values = append(c.values, f.Value)
	}
}

// Insert implements load.Client. It overwrites an existing record, so that an insert can be retried.
func (c *client) Insert(ctx context.Context, table, key string, values []load.Field) error {
	_, err := c.setStatement(ctx, kindInsert, table, key, values)
	return err
}

// InsertAll implements load.BulkClient: all statements in one transaction.
func (c *client) InsertAll(ctx context.Context, table string, records []load.Record) error {
	s, err := c.beginOperation(ctx, false)
	if err != nil {
		return err
	}
	var batch pgconn.Batch
	for _, r := range records {
		st, err := c.statement(s, kindInsert, table, len(r.Values), func(i int) string { return r.Values[i].Name })
		if err != nil {
			return s.endOperation(err)
		}
		c.runKeyed(r.Key)
		c.bind(r.Values)
		batch.ExecStatement(st.StatementDescription, c.values, binaryFormat, binaryFormat)
	}
	return s.endOperation(s.conn.ExecBatch(context.Background(), &batch).Close())
}

func (c *client) Update(ctx context.Context, table, key string, values []load.Field) error {
	n, err := c.setStatement(ctx, kindUpdate, table, key, values)
	if err == nil && n == 0 {
		return load.ErrNotFound
	}
	return err
}

func (c *client) Delete(ctx context.Context, table, key string) error {
	n, err := c.setStatement(ctx, kindDelete, table, key, nil)
	if err == nil && n == 0 {
		return load.ErrNotFound
	}
	return err
}

func (c *client) DropTable(ctx context.Context, table string) error {
	s, err := c.beginOperation(ctx, false)
	if err != nil {
		return err
	}
	_, err = rows(context.Background(), s.conn, "DROP TABLE IF EXISTS "+pgx.Identifier{table}.Sanitize())
	return s.endOperation(err)
}

func (c *client) Count(ctx context.Context, table string) (int64, error) {
	s, err := c.beginOperation(ctx, true)
	if err != nil {
		return 0, err
	}
	if table == "" {
		table = c.table
	}
	n, err := count(context.Background(), s.conn, table)
	return n, s.endOperation(err)
}
