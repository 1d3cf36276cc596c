package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/machine/host"
)

// Dial makes a TCP connection.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// Driver is what the databases of the family have in common; they embed it. It must not be copied.
type Driver struct {
	// Kind is the database's name.
	Kind string
	// Discover is set if only one member accepts writes.
	Discover Discover
	// Column is the type of field columns, Blob if nil. Engine ends the CREATE TABLE statement (" ENGINE=NDB").
	Column Column
	Engine string
	// Dial makes connections, with a net.Dialer if nil.
	Dial Dial

	routers database.ClientPool[settings, *router]
}

func (d *Driver) Name() string { return d.Kind }

func (*Driver) Properties() []string { return Properties() }

func (*Driver) ServerProperties(servers []string, _ string) map[string]string {
	return map[string]string{PropHosts: strings.Join(servers, ",")}
}

func (d *Driver) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, err
	}
	router, release, err := d.routers.Acquire(ctx, s, database.ClientSource[*router]{
		Open: func(ctx context.Context) (*router, error) { return newRouter(ctx, s, d.Discover, d.Dial) },
	})
	if err != nil {
		return nil, fmt.Errorf("opening a client of %s: %w", d.Kind, err)
	}
	c := &Client{
		router: router, release: release, worker: int(router.workers.Add(1) - 1),
		maker: &maker{d.Column, d.Engine}, known: make(map[string]*table),
	}
	if d.Column == nil {
		c.maker.column = Blob
	}
	if err := c.warm(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening a client of %s: %w", d.Kind, err), c.Close())
	}
	return c, nil
}

func (d *Driver) ServerVersion(ctx context.Context, server string, properties map[string]string) (string, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return "", err
	}
	s.hosts = server
	r, err := newRouter(ctx, s, nil, d.Dial)
	if err != nil {
		return "", err
	}
	l, err := r.dial(ctx, server, time.Now().Add(s.connect))
	if err != nil {
		return "", err
	}
	defer l.close()
	rows, err := l.query(ctx, "SELECT VERSION()")
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0][0], nil
}

// OpenMember returns a client of one member's copy that connects from the member's host. Session sets variables
// that keep the server from waiting for other members.
func (d *Driver) OpenMember(ctx context.Context, of *Server, session string) (load.Client, error) {
	s, err := parseSettings(map[string]string{PropHosts: of.Addr(), PropMember: First, PropSession: session})
	if err != nil {
		return nil, err
	}
	r, err := newRouter(ctx, s, nil, host.Dialer(of.Host, AdminTimeout))
	if err != nil {
		return nil, fmt.Errorf("opening a client of %s on %s: %w", d.Kind, of.Host.Name(), err)
	}
	return &Client{router: r, alone: true, known: make(map[string]*table)}, nil
}

// warm connects and creates the workload's table before the first operation.
func (c *Client) warm(ctx context.Context) error {
	l, err := c.beginOperation(ctx, true)
	if err != nil {
		return err
	}
	_, err = c.table(ctx, l, "")
	return c.endOperation(ctx, l, err)
}

// Client is the client of one worker.
type Client struct {
	router  *router
	worker  int
	maker   *maker // nil for a client that only reads
	release func() error
	// alone restricts the client to reads from its first member.
	alone bool

	// read and write are the same link if every member accepts writes.
	read, write *link

	known map[string]*table

	text   []byte         // the statement's
	values []byte         // what the last read returned
	one    [1]load.Record // what Insert writes
}

var (
	_ load.Client     = (*Client)(nil)
	_ load.Counter    = (*Client)(nil)
	_ load.BulkClient = (*Client)(nil)
)

func (c *Client) beginOperation(ctx context.Context, writes bool) (*link, error) {
	if err := ctx.Err(); err != nil {
		return nil, load.Failed(database.ErrorClass(err), "", err)
	}
	now := time.Now()
	deadline, bounded := ctx.Deadline()
	if !bounded {
		deadline = now.Add(c.router.settings.timeout)
	}
	l, err := c.link(ctx, writes, now, deadline)
	if err != nil {
		return nil, err
	}
	l.used = now
	if err := l.stream.SetDeadline(deadline); err != nil {
		return nil, c.endOperation(ctx, l, driver.ErrBadConn)
	}
	return l, nil
}

// link returns a connection to the member for an operation. It reconnects if another member accepts writes now.
func (c *Client) link(ctx context.Context, writes bool, now, deadline time.Time) (*link, error) {
	if c.alone && writes {
		return nil, load.Failed("unsupported", "", errReadOnlyClient)
	}
	toPrimary := c.router.discover != nil && !c.alone && (writes || c.router.settings.reads == ReadsPrimary) &&
		*c.router.primary.Load() != AnyMember
	at := &c.read
	if toPrimary {
		at = &c.write
	}
	if l := *at; l != nil {
		if !l.stale(ctx, now, deadline) && !l.broken() && (!toPrimary || l.addr == *c.router.primary.Load()) {
			return l, nil
		}
		*at = nil
		l.close()
	}
	var err error
	if toPrimary {
		*at, err = c.dialPrimary(ctx, deadline)
	} else {
		*at, err = c.dialMember(ctx, deadline)
	}
	return *at, err
}

func (c *Client) dialPrimary(ctx context.Context, deadline time.Time) (*link, error) {
	if *c.router.primary.Load() == "" {
		if err := c.router.findPrimary(ctx, deadline); err != nil {
			return nil, err
		}
	}
	addr := *c.router.primary.Load()
	if addr == "" {
		return nil, load.Failed("no_primary", "", errors.New("no member is known to take writes"))
	}
	l, err := c.router.dial(ctx, addr, c.connectDeadline(deadline))
	if err != nil {
		c.router.forgetPrimary(addr)
		return nil, err
	}
	return l, nil
}

// dialMember connects to the first member that accepts the connection.
func (c *Client) dialMember(ctx context.Context, deadline time.Time) (*link, error) {
	choices := c.router.candidates(c.worker)
	if c.alone {
		choices = choices[:1]
	}
	var first error
	for _, addr := range choices {
		l, err := c.router.dial(ctx, addr, c.connectDeadline(deadline))
		if err == nil {
			c.router.markServing(addr)
			return l, nil
		}
		c.router.markFailed(addr)
		if first == nil {
			first = err
		}
		if time.Until(deadline) <= 0 || ctx.Err() != nil {
			break
		}
	}
	// No member answers. The wait keeps workers without an operation from using a whole core each.
	return nil, errors.Join(first, waitUntil(ctx, restless, deadline))
}

func (c *Client) connectDeadline(deadline time.Time) time.Time {
	if soon := time.Now().Add(c.router.settings.connect); soon.Before(deadline) {
		return soon
	}
	return deadline
}

// endOperation returns the outcome of an operation. It drops a link that broke or whose member does not serve.
func (c *Client) endOperation(ctx context.Context, l *link, err error) error {
	if err == nil || errors.Is(err, load.ErrNotFound) {
		return err
	}
	var e *mysqldriver.MySQLError
	var done *load.OpError
	var early *unsent
	switch {
	case errors.As(err, &done):
		return err
	case errors.As(err, &early):
		err = load.Failed(database.ErrorClass(early.error), l.addr, early.error)
	case !errors.As(err, &e):
		err = lostError(l.addr, err, l.stream.err)
	default:
		answer := serverError(l.addr, e)
		if e.Number == errRollback && c.stillMember(ctx, l) {
			return load.Failed("conflict", l.addr, e)
		}
		if !needsOtherMember(err) {
			return answer
		}
		err = answer
	}
	c.drop(l)
	return err
}

// stillMember reports whether a server is in its group. If it is not, the others may have a write that it
// rolled back; a member that rolls back had a conflict.
func (c *Client) stillMember(ctx context.Context, l *link) bool {
	rows, err := l.query(ctx, "SELECT member_state FROM performance_schema.replication_group_members WHERE member_id = @@server_uuid")
	return err == nil && len(rows) == 1 && rows[0][0] == "ONLINE"
}

// drop closes a link. The next operation chooses a member again.
func (c *Client) drop(l *link) {
	c.router.markFailed(l.addr)
	c.router.forgetPrimary(l.addr)
	l.close()
	if c.read == l {
		c.read = nil
	}
	if c.write == l {
		c.write = nil
	}
}

func (c *Client) table(ctx context.Context, l *link, name string) (*table, error) {
	if name == "" {
		name = c.router.settings.table
	}
	if t := c.known[name]; t != nil {
		return t, nil
	}
	t, err := c.router.table(ctx, l, name, c.maker)
	if err == nil {
		c.known[name] = t
	}
	return t, err
}

// asUnsent marks an error that occurred before a write was sent.
func asUnsent(l *link, err error) error {
	if number(err) != 0 {
		return err
	}
	cause := l.stream.err
	if cause == nil {
		cause = err
	}
	return &unsent{cause}
}

// unsent is an error before a write was sent.
type unsent struct{ error }

func (u *unsent) Unwrap() error { return u.error }

// Close closes the connections and releases what the workers share.
func (c *Client) Close() error {
	for _, l := range []*link{c.read, c.write} {
		if l != nil {
			l.close()
		}
	}
	c.read, c.write = nil, nil
	if c.release == nil { // reads one member alone
		return nil
	}
	return c.release()
}

// ignoreEOF returns an error of reading rows, nil at the end of the rows.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// number returns a server's error number, 0 for other errors.
func number(err error) uint16 {
	var e *mysqldriver.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}
