package cassandra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"skerry/internal/database"
	"skerry/internal/load"
)

// client is one worker's. Its statements are its own: the driver's queries are changed
// in place from one operation to the next.
type client struct {
	*store
	release func() error
	reads   map[string]*statement // by the fields that they name
	scans   map[string]*statement
	writes  map[string]*statement // updates and inserts, by the fields that they set
	remove  *statement
	name    []byte // scratch: a statement's name
	key     []byte // scratch: a key's bytes
	level   gocql.Consistency
	locator *locator // of a client that reads one member alone, else nil
}

var _ load.Client = (*client)(nil)

func newClient(s *store, release func() error) *client {
	return &client{store: s, release: release, reads: map[string]*statement{}, scans: map[string]*statement{}, writes: map[string]*statement{},
		level: consistencyLevel(s.readLevel)}
}

// statement is a query that is prepared once for each member.
type statement struct {
	query *gocql.Query
	args  []any
	names []string // of the fields that it selects
	// Selected values: those of the key first where it is selected.
	values [][]byte
	into   []any
}

func (c *client) newStatement(cql string, level gocql.Consistency, arguments int, names []string, selected int) *statement {
	s := &statement{query: c.session.Query(cql).Consistency(level), args: make([]any, arguments), names: names,
		values: make([][]byte, selected)}
	for i := range s.values {
		s.into = append(s.into, &s.values[i])
	}
	return s
}

// begin begins an operation on a key; cancel ends what bounds it.
func (c *client) begin(ctx context.Context, table string) (bounded context.Context, cancel context.CancelFunc, err error) {
	if table != "" && table != c.table {
		return nil, nil, load.Failed(classInvalid, "", fmt.Errorf("%w: %s, not %s", errTable, c.table, table))
	}
	if err := ctx.Err(); err != nil {
		class := database.ClassCanceled
		if errors.Is(err, context.DeadlineExceeded) {
			class = database.ClassTimeout
		}
		return nil, nil, load.Failed(class, "", err)
	}
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}, nil
	}
	bounded, cancel = context.WithTimeout(ctx, c.timeout+time.Second)
	return bounded, cancel, nil
}

// run sends a statement with its arguments to a replica of key; "" goes to any member.
func (c *client) run(ctx context.Context, s *statement, key string) *gocql.Iter {
	if key != "" {
		c.key = append(c.key[:0], key...)
		s.query.RoutingKey(c.key)
	}
	return s.query.Bind(s.args...).IterContext(ctx)
}

// statementFor finds the statement of some fields, or makes it.
func (c *client) statementFor(of map[string]*statement, kind byte, fields []string, prepare func() *statement) *statement {
	c.name = append(c.name[:0], kind)
	for _, f := range fields {
		c.name = append(append(c.name, f...), 0)
	}
	if s := of[string(c.name)]; s != nil {
		return s
	}
	s := prepare()
	of[string(c.name)] = s
	return s
}

// columnsFor are the fields that an operation names, all where it names none.
func (c *client) columnsFor(fields []string) []string {
	if len(fields) == 0 {
		return c.columns
	}
	return slices.Clone(fields)
}

// Close implements load.Client.
func (c *client) Close() error { return c.release() }
