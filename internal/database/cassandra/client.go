package cassandra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"skerry/internal/database"
	"skerry/internal/load"
)

// client belongs to one worker. Statements are not shared, because the driver modifies its queries.
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

// begin checks the table and bounds the context. The caller must call cancel.
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

// run sends a statement to a replica of key, or to any member if key is "".
func (c *client) run(ctx context.Context, s *statement, key string) *gocql.Iter {
	if key != "" {
		c.key = append(c.key[:0], key...)
		s.query.RoutingKey(c.key)
	}
	return s.query.Bind(s.args...).IterContext(ctx)
}

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

func (c *client) columnsFor(fields []string) []string {
	if len(fields) == 0 {
		return c.columns
	}
	return slices.Clone(fields)
}

func (c *client) Close() error { return c.release() }

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

func (s *statement) next(iter *gocql.Iter) bool {
	for i, v := range s.values {
		if v == nil { // the driver leaves nil where a value is empty, and where there is none
			s.values[i] = []byte{}
		}
	}
	return iter.Scan(s.into...)
}

func (s *statement) fields(values [][]byte, dst []load.Field) []load.Field {
	for i, v := range values {
		if v != nil {
			dst = append(dst, load.Field{Name: s.names[i], Value: v})
		}
	}
	return dst
}

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

func (c *client) Insert(ctx context.Context, table, key string, values []load.Field) error {
	return c.write(ctx, table, key, values, func(names []string) string {
		return "INSERT INTO " + quoteName(c.table) + " (" + quoteName(keyColumn) + ", " + columnList(names) + ") VALUES (?" + strings.Repeat(", ?", len(names)) + ")"
	}, 'i', 1)
}

// write runs a statement with the values and the key as arguments. The values come first if first is 1.
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

func (c *client) checkWritable() error {
	if c.locator != nil {
		return fmt.Errorf("%w: this client reads one member's copies", load.ErrUnsupported)
	}
	return nil
}

func (c *client) finish(iter *gocql.Iter) error {
	if err := iter.Close(); err != nil {
		return classifyError(err, iter.Host(), true)
	}
	return nil
}

// Delete removes a record. Cassandra does not report whether it existed.
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

// Scan visits records in the order of their tokens, as YCSB's binding does. It is not atomic.
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

const scanPage = 5000

// Classes of errors that Cassandra reports, and the driver's own.
const (
	classUnavailable   = "unavailable"   // too few replicas alive: not begun
	classOverloaded    = "overloaded"    // not begun
	classBootstrapping = "bootstrapping" // not begun
	classWriteTimeout  = "write_timeout" // too few replicas answered in time
	classWriteFailure  = "write_failure" // a replica failed
	classReadTimeout   = "read_timeout"
	classReadFailure   = "read_failure"
	classInvalid       = "invalid"
	classAuth          = "auth"
	classServer        = "server_error"
	classNoNode        = "no_connection" // to any member: not sent
	classNoStream      = "no_stream"     // a connection with all its requests outstanding: not sent
)

// replyClasses maps members' error codes to classes, and to whether no replica can have done the write.
var replyClasses = map[int]struct {
	class   string
	notDone bool
}{
	gocql.ErrCodeServer:          {classServer, false},
	gocql.ErrCodeProtocol:        {classInvalid, true},
	gocql.ErrCodeCredentials:     {classAuth, true},
	gocql.ErrCodeUnavailable:     {classUnavailable, true},
	gocql.ErrCodeOverloaded:      {classOverloaded, true},
	gocql.ErrCodeBootstrapping:   {classBootstrapping, true},
	gocql.ErrCodeWriteTimeout:    {classWriteTimeout, false},
	gocql.ErrCodeWriteFailure:    {classWriteFailure, false},
	gocql.ErrCodeCDCWriteFailure: {classWriteFailure, false},
	gocql.ErrCodeCASWriteUnknown: {classWriteTimeout, false},
	gocql.ErrCodeReadTimeout:     {classReadTimeout, true},
	gocql.ErrCodeReadFailure:     {classReadFailure, true},
	gocql.ErrCodeSyntax:          {classInvalid, true},
	gocql.ErrCodeUnauthorized:    {classAuth, true},
	gocql.ErrCodeInvalid:         {classInvalid, true},
	gocql.ErrCodeConfig:          {classInvalid, true},
	gocql.ErrCodeUnprepared:      {classInvalid, true},
}

func classifyError(err error, node *gocql.HostInfo, write bool) error {
	var reply gocql.RequestError
	at := nodeName(node)
	switch {
	case errors.As(err, &reply):
		a, known := replyClasses[reply.Code()]
		if !known {
			a.class = classServer
		}
		if a.notDone || !write {
			return load.Failed(a.class, at, err)
		}
		return load.Unknown(a.class, at, err)
	case errors.Is(err, gocql.ErrNoConnections), errors.Is(err, gocql.ErrUnavailable), errors.Is(err, gocql.ErrSessionClosed):
		return load.Failed(classNoNode, at, err)
	case errors.Is(err, gocql.ErrNoStreams):
		return load.Failed(classNoStream, at, err)
	case errors.Is(err, gocql.ErrTimeoutNoResponse), errors.Is(err, context.DeadlineExceeded):
		return load.Unknown(database.ClassTimeout, at, err)
	case errors.Is(err, gocql.ErrConnectionClosed):
		return load.Unknown(database.ClassEOF, at, err)
	}
	return load.Unknown(database.ErrorClass(err), at, err)
}

// nodeName returns a member's address and port, "" if the driver had no member to ask.
func nodeName(h *gocql.HostInfo) string {
	if h == nil {
		return ""
	}
	return strings.TrimPrefix(h.ConnectAddressAndPort(), "/")
}
