package cassandra

import (
	"context"
	"fmt"
	"strings"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"skerry/internal/load"
)

// Read reads a record, or some of its fields.
func (c *client) Read(ctx context.Context, table, key string, fields []string, dst []load.Field) ([]load.Field, error) {
	ctx, cancel, err := c.begin(ctx, table)
	if err != nil {
		return dst, err
	}
	defer cancel()
	if c.locator != nil && !c.locator.holds(key) {
		return dst, load.ErrNotHeld
	}
	s := c.statementFor(c.reads, 'r', fields, func() *statement {
		names := c.columnsFor(fields)
		return c.newStatement("SELECT "+columnList(names)+" FROM "+quoteName(c.table)+" WHERE "+quoteName(keyColumn)+" = ?", c.level, 1, names, len(names))
	})
	s.args[0] = key
	iter := c.run(ctx, s, key)
	found := s.next(iter)
	if err := iter.Close(); err != nil {
		return dst, classifyError(err, iter.Host(), false)
	}
	if !found {
		return dst, load.ErrNotFound
	}
	return s.fields(s.values, dst), nil
}

// next reads a row.
func (s *statement) next(iter *gocql.Iter) bool {
	for i, v := range s.values {
		if v == nil { // the driver leaves nil where a value is empty, and where there is none
			s.values[i] = []byte{}
		}
	}
	return iter.Scan(s.into...)
}

// fields appends a row's fields that have a value.
func (s *statement) fields(values [][]byte, dst []load.Field) []load.Field {
	for i, v := range values {
		if v != nil {
			dst = append(dst, load.Field{Name: s.names[i], Value: v})
		}
	}
	return dst
}

// columnList is names as CQL has them between commas.
func columnList(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = quoteName(n)
	}
	return strings.Join(quoted, ", ")
}

// Update writes fields of a record. Cassandra makes the record when there is none.
func (c *client) Update(ctx context.Context, table, key string, values []load.Field) error {
	return c.write(ctx, table, key, values, func(names []string) string {
		sets := make([]string, len(names))
		for i, n := range names {
			sets[i] = quoteName(n) + " = ?"
		}
		return "UPDATE " + quoteName(c.table) + " SET " + strings.Join(sets, ", ") + " WHERE " + quoteName(keyColumn) + " = ?"
	}, 'u', 0)
}

// Insert writes a record.
func (c *client) Insert(ctx context.Context, table, key string, values []load.Field) error {
	return c.write(ctx, table, key, values, func(names []string) string {
		return "INSERT INTO " + quoteName(c.table) + " (" + quoteName(keyColumn) + ", " + columnList(names) + ") VALUES (?" + strings.Repeat(", ?", len(names)) + ")"
	}, 'i', 1)
}

// write runs a statement whose arguments are the values and the key, in front of them
// when first is 1, else behind.
func (c *client) write(ctx context.Context, table, key string, values []load.Field, cql func([]string) string, kind byte, first int) error {
	if err := c.checkWritable(); err != nil {
		return err
	}
	ctx, cancel, err := c.begin(ctx, table)
	if err != nil {
		return err
	}
	defer cancel()
	c.name = append(c.name[:0], kind)
	for _, f := range values {
		c.name = append(append(c.name, f.Name...), 0)
	}
	s := c.writes[string(c.name)]
	if s == nil {
		var names []string
		for _, f := range values {
			names = append(names, strings.Clone(f.Name))
		}
		s = c.newStatement(cql(names), consistencyLevel(c.writeLevel), len(values)+1, nil, 0)
		c.writes[string(c.name)] = s
	}
	for i := range values {
		s.args[first+i] = values[i].Value
	}
	if first == 1 {
		s.args[0] = key
	} else {
		s.args[len(values)] = key
	}
	return c.finish(c.run(ctx, s, key))
}

// checkWritable refuses writes where one member alone is read.
func (c *client) checkWritable() error {
	if c.locator != nil {
		return fmt.Errorf("%w: this client reads one member's copies", load.ErrUnsupported)
	}
	return nil
}

// finish ends a write.
func (c *client) finish(iter *gocql.Iter) error {
	if err := iter.Close(); err != nil {
		return classifyError(err, iter.Host(), true)
	}
	return nil
}

// Delete removes a record. Cassandra does not tell whether there was one.
func (c *client) Delete(ctx context.Context, table, key string) error {
	if err := c.checkWritable(); err != nil {
		return err
	}
	ctx, cancel, err := c.begin(ctx, table)
	if err != nil {
		return err
	}
	defer cancel()
	if c.remove == nil {
		c.remove = c.newStatement("DELETE FROM "+quoteName(c.table)+" WHERE "+quoteName(keyColumn)+" = ?", consistencyLevel(c.writeLevel), 1, nil, 0)
	}
	c.remove.args[0] = key
	return c.finish(c.run(ctx, c.remove, key))
}
