package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"skerry/internal/database"
	"skerry/internal/load"
)

// link is a worker's connection to one member, with its prepared statements.
type link struct {
	addr   string
	conn   driver.Conn
	stream *stream
	used   time.Time // when an operation last began on it

	statements map[string]*statement // by text
	args       []driver.NamedValue
	row        []driver.Value
}

type statement struct {
	driver.StmtExecContext
	driver.StmtQueryContext
	close func() error
}

// idleAfter is the idle time after which a link is checked before use, so that no operation goes to an ended member.
const idleAfter = time.Second

func (r *router) dial(ctx context.Context, addr string, deadline time.Time) (*link, error) {
	s := r.settings
	l := &link{addr: addr, statements: make(map[string]*statement)}
	c := config(addr, r.login.User, r.login.Password.Reveal(), s.schema)
	c.TLS = r.login.TLS // the driver sets the name of the server
	c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		conn, err := r.connect(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		s, ok := conn.(socket)
		if !ok {
			return nil, errors.Join(fmt.Errorf("%s is reached by no socket", addr), conn.Close())
		}
		l.stream = &stream{socket: s}
		return l.stream, s.SetDeadline(deadline)
	}
	connector, err := mysqldriver.NewConnector(c)
	if err != nil {
		return nil, load.Failed(database.ClassOther, addr, err)
	}
	if l.conn, err = connector.Connect(ctx); err != nil {
		return nil, load.Failed(l.dialClass(err), addr, err)
	}
	if err := l.set(ctx, s.session); err != nil {
		l.close()
		return nil, load.Failed(l.dialClass(err), addr, err)
	}
	return l, nil
}

// dialClass returns the class of a failed connection attempt. Nothing was sent.
func (l *link) dialClass(err error) string {
	var e *mysqldriver.MySQLError
	switch {
	case errors.As(err, &e) && (e.Number == 1044 || e.Number == 1045):
		return "auth"
	case errors.As(err, &e):
		if w := words[e.Number]; w != "" {
			return w
		}
		return fmt.Sprintf("error_%d", e.Number)
	case l.stream != nil && l.stream.err != nil:
		return database.DialErrorClass(l.stream.err)
	}
	return database.DialErrorClass(err)
}

// set sets session variables: name=value;name=value.
func (l *link) set(ctx context.Context, variables string) error {
	for v := range strings.SplitSeq(variables, ";") {
		if v = strings.TrimSpace(v); v == "" {
			continue
		}
		if err := l.exec(ctx, "SET SESSION "+v); err != nil {
			return err
		}
	}
	return nil
}

func (l *link) exec(ctx context.Context, statement string) error {
	x, ok := l.conn.(driver.ExecerContext)
	if !ok {
		return fmt.Errorf("running %s: the driver cannot", statement)
	}
	_, err := x.ExecContext(ctx, statement, nil)
	return err
}

// query runs an unprepared query and returns its rows as text. NULL is "".
func (l *link) query(ctx context.Context, query string) ([][]string, error) {
	q, ok := l.conn.(driver.QueryerContext)
	if !ok {
		return nil, fmt.Errorf("querying %s: the driver cannot", query)
	}
	rows, err := q.QueryContext(ctx, query, nil)
	if err != nil {
		return nil, err
	}
	dest := make([]driver.Value, len(rows.Columns()))
	var table [][]string
	for {
		err := rows.Next(dest)
		if err != nil {
			return table, errors.Join(ignoreEOF(err), rows.Close())
		}
		row := make([]string, len(dest))
		for i, v := range dest {
			switch v := v.(type) {
			case nil:
			case []byte:
				row[i] = string(v)
			default:
				row[i] = fmt.Sprint(v)
			}
		}
		table = append(table, row)
	}
}

func (l *link) statement(ctx context.Context, text []byte) (*statement, error) {
	if s := l.statements[string(text)]; s != nil {
		return s, nil
	}
	p, ok := l.conn.(driver.ConnPrepareContext)
	if !ok {
		return nil, errors.New("the driver cannot prepare statements")
	}
	raw, err := p.PrepareContext(ctx, string(text))
	if err != nil {
		return nil, err
	}
	x, okX := raw.(driver.StmtExecContext)
	q, okQ := raw.(driver.StmtQueryContext)
	if !okX || !okQ {
		return nil, errors.Join(errors.New("the driver cannot run prepared statements"), raw.Close())
	}
	s := &statement{x, q, raw.Close}
	l.statements[string(text)] = s
	return s, nil
}

// bind returns the arguments of the next statement: a key and values.
func (l *link) bind(values ...driver.Value) []driver.NamedValue {
	l.args = l.args[:0]
	for i, v := range values {
		l.args = append(l.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return l.args
}

// stale reports whether the connection ended while it was idle. A passed deadline does not count.
func (l *link) stale(ctx context.Context, now, deadline time.Time) bool {
	if now.Sub(l.used) <= idleAfter {
		return false
	}
	if l.stream.SetDeadline(deadline) != nil {
		return true
	}
	r, ok := l.conn.(driver.SessionResetter)
	return ok && r.ResetSession(ctx) != nil
}

func (l *link) broken() bool {
	v, ok := l.conn.(driver.Validator)
	return ok && !v.IsValid()
}

// close closes the connection. Whether the server notices does not matter.
func (l *link) close() { _ = l.conn.Close() }

// stream is the driver's connection. It records what ended it, and has deadlines for operations.
type stream struct {
	socket
	err error
}

// socket is a connection that the driver can check: TCP, or a tunnel to another machine.
type socket interface {
	net.Conn
	syscall.Conn
}

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.socket.Read(b)
	if err != nil {
		s.err = err
	}
	return n, err
}

func (s *stream) Write(b []byte) (int, error) {
	n, err := s.socket.Write(b)
	if err != nil {
		s.err = err
	}
	return n, err
}
