package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"skerry/internal/database"
	"skerry/internal/load"
)

// client is one worker's: a connection to the primary and, where reads go elsewhere,
// one for them; both are the same where the nearest server is the primary. Nothing is tried again; a connection that broke, or whose server is no
// primary any more, is replaced for the next operation.
type client struct {
	settings
	members func() []string // their addresses
	release func() error
	sought  time.Time // when nobody was found
	write   *lane
	read    *lane // nil while reads go to the primary
	alone   bool  // read is one member's, and nobody else is asked

	key    []byte   // of a statement
	values [][]byte // of a statement
	number [8]byte
	arena  []byte // what fields that were read refer to
}

// lane is a connection with its prepared statements.
type lane struct {
	conn       *pgconn.PgConn
	addr       string
	statements map[string]*statement
}

// statement is prepared; names are its columns'.
type statement struct {
	*pgconn.StatementDescription
	names []string
}

var (
	_ load.Client     = (*client)(nil)
	_ load.Counter    = (*client)(nil)
	_ load.BulkClient = (*client)(nil)
)

// openClient returns a client that is connected to the primary, and makes the table when
// there is none.
func (d *Postgres) openClient(ctx context.Context, s settings) (*client, error) {
	dir, release, err := d.directories.Acquire(ctx, s, database.ClientSource[*directory]{
		Open:  func(ctx context.Context) (*directory, error) { return openDirectory(ctx, s), nil },
		Close: (*directory).close,
	})
	if err != nil {
		return nil, fmt.Errorf("opening a client of postgres: %w", err)
	}
	c := &client{settings: s, members: dir.members, release: release}
	fail := func(err error) (*client, error) {
		return nil, errors.Join(fmt.Errorf("opening a client of postgres: %w", err), c.Close())
	}
	if c.write, err = c.findLane(ctx, readPrimary); err != nil {
		return fail(err)
	}
	if err := d.ensure(ctx, c.write.conn, s); err != nil {
		return fail(err)
	}
	if s.read != readPrimary {
		if c.read, err = c.lane(ctx, s.read); err != nil {
			return fail(err)
		}
	}
	return c, nil
}

// session is an operation under way.
type session struct {
	*lane
	slot **lane // where the client keeps it
	stop func() bool
}

// beginOperation finds the connection for an operation and bounds it.
func (c *client) beginOperation(ctx context.Context, reads bool) (session, error) {
	if err := ctx.Err(); err != nil {
		return session{}, load.Failed(database.ErrorClass(err), "", err)
	}
	s := session{slot: &c.write}
	want := readPrimary
	if reads && (c.alone || c.settings.read != readPrimary) {
		s.slot, want = &c.read, c.settings.read
	}
	if *s.slot == nil || (*s.slot).conn.IsClosed() {
		if c.alone {
			return s, load.Failed(database.ClassEOF, c.members()[0], errors.New("the connection has ended"))
		}
		if err := c.reconnect(ctx, s.slot, want); err != nil {
			return s, err
		}
	}
	s.lane = *s.slot
	deadline, bounded := ctx.Deadline()
	if !bounded {
		deadline = time.Now().Add(c.timeout)
		if ctx.Done() != nil {
			conn := s.conn.Conn()
			s.stop = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // closed already: as good
		}
	}
	if err := s.conn.Conn().SetDeadline(deadline); err != nil {
		return s, load.Failed(database.ErrorClass(err), s.addr, err)
	}
	return s, nil
}

func (c *client) reconnect(ctx context.Context, slot **lane, want string) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	l, err := c.lane(ctx, want)
	*slot = l
	return err
}

// lane is a connection to the server that is wanted: for reads that of the writes where both go to one server,
// which has a process for each connection, and so many and no more. The error comes with nil.
func (c *client) lane(ctx context.Context, want string) (*lane, error) {
	l, err := c.findLane(ctx, want)
	if err != nil {
		return nil, err
	}
	if want != readPrimary && c.write != nil && c.write.addr == l.addr && !c.write.conn.IsClosed() {
		abandon(l.conn)
		return c.write, nil
	}
	return l, nil
}

// endOperation ends an operation. A server that is no primary any more is left.
func (s session) endOperation(err error) error {
	if s.stop != nil {
		s.stop()
	}
	if err == nil {
		return nil
	}
	err = classify(s.addr, err)
	var e *load.OpError
	if errors.As(err, &e) && (e.Class == classReadOnly || e.Class == classStarting) {
		abandon(s.conn)
	}
	return err
}

// Close implements load.Client.
func (c *client) Close() error {
	for _, l := range []*lane{c.write, c.read} {
		if l != nil {
			abandon(l.conn)
		}
	}
	c.write, c.read = nil, nil
	if c.release == nil { // reads one member alone
		return nil
	}
	return c.release()
}
