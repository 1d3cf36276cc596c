package cassandra

import (
	"context"

	"skerry/internal/load"
)

// Scan visits records in the order of their tokens, which is that of the ring and not of
// the keys, as YCSB's binding does: Cassandra keeps no other. It is not atomic.
func (c *client) Scan(ctx context.Context, table, start string, count int, fields []string, visit func(string, []load.Field)) (int, error) {
	ctx, cancel, err := c.begin(ctx, table)
	if err != nil || count <= 0 {
		return 0, err
	}
	defer cancel()
	s := c.statementFor(c.scans, 's', fields, func() *statement {
		names := c.columnsFor(fields)
		return c.newStatement("SELECT "+quoteName(keyColumn)+", "+columnList(names)+" FROM "+quoteName(c.table)+
			" WHERE token("+quoteName(keyColumn)+") >= token(?) LIMIT ?", c.level, 2, names, 1+len(names))
	})
	s.args[0], s.args[1] = start, int32(min(count, 1<<30))
	s.query.PageSize(min(count, scanPage))
	iter := c.run(ctx, s, start)
	seen := 0
	var row []load.Field
	for s.next(iter) {
		seen++
		if visit != nil {
			row = s.fields(s.values[1:], row[:0])
			visit(string(s.values[0]), row)
		}
	}
	if err := iter.Close(); err != nil {
		return seen, classifyError(err, iter.Host(), false)
	}
	return seen, nil
}

// scanPage is how many records come in one answer, the driver's own default.
const scanPage = 5000
