package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"skerry/internal/database"
	"skerry/internal/load"
)

// Client is one worker's.
type Client struct {
	router  *router
	worker  int
	maker   *maker // nil for a client that only reads
	release func() error
	// alone keeps it to its first member, which it reads only.
	alone bool

	// read and write are the same where every member takes writes.
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

// beginOperation returns the link that an operation goes over, with its deadline set.
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

// link is a connection to the member that an operation goes to. It is made when there is
// none, or when writes go to another member than they did.
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

// dialPrimary connects to the member that takes writes.
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

// dialMember connects to the first member that lets it. Nothing was sent to those before.
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
	// Nobody is there: workers that have nothing else to do must not take a core each.
	return nil, errors.Join(first, waitUntil(ctx, restless, deadline))
}

// connectDeadline bounds the making of a connection.
func (c *Client) connectDeadline(deadline time.Time) time.Time {
	if soon := time.Now().Add(c.router.settings.connect); soon.Before(deadline) {
		return soon
	}
	return deadline
}

// endOperation is what became of an operation that ended with err. A link that broke, or whose
// member does not serve, is given up.
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
		told := serverError(l.addr, e)
		if e.Number == errRollback && c.stillMember(ctx, l) {
			return load.Failed("conflict", l.addr, e)
		}
		if !needsOtherMember(err) {
			return told
		}
		err = told
	}
	c.drop(l)
	return err
}

// stillMember tells whether a member of a group is still one. When it rolls a write back while
// that commits, the write was in conflict with another one; when it was shut out of the
// group, the others may have the write.
func (c *Client) stillMember(ctx context.Context, l *link) bool {
	rows, err := l.query(ctx, "SELECT member_state FROM performance_schema.replication_group_members WHERE member_id = @@server_uuid")
	return err == nil && len(rows) == 1 && rows[0][0] == "ONLINE"
}

// drop gives a link up; the next operation chooses anew.
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

// table is what is known of a table.
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

// asUnsent marks a connection that broke before a write was sent over it: it is as good as
// one that could not be made.
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

// Close closes the connections and, with the last worker, gives up what they share.
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

// ignoreEOF is an error of reading rows, nil when they had merely ended.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// number is a server's error number, 0 for other errors.
func number(err error) uint16 {
	var e *mysqldriver.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}
