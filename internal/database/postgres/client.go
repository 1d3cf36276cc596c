package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"skerry/internal/database"
	"skerry/internal/load"
)

// client belongs to one worker: a connection to the primary and, for other reads, a second one.
type client struct {
	settings
	members func() []string // their addresses
	release func() error
	sought  time.Time // when the last search found no server
	write   *lane
	read    *lane // nil while reads go to the primary
	alone   bool  // read one member only

	key    []byte   // of a statement
	values [][]byte // of a statement
	number [8]byte
	arena  []byte // what fields that were read refer to
}

type lane struct {
	conn       *pgconn.PgConn
	addr       string
	statements map[string]*statement
}

type statement struct {
	*pgconn.StatementDescription
	names []string
}

var (
	_ load.Client     = (*client)(nil)
	_ load.Counter    = (*client)(nil)
	_ load.BulkClient = (*client)(nil)
)

// openClient returns a client connected to the primary, and creates the table if it is missing.
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
	if err := dir.ensureTable(ctx, c.write.conn, s); err != nil {
		return fail(err)
	}
	if s.read != readPrimary {
		if c.read, err = c.lane(ctx, s.read); err != nil {
			return fail(err)
		}
	}
	return c, nil
}

type session struct {
	*lane
	slot **lane // where the client keeps it
	stop func() bool
}

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

// lane returns a connection to the wanted server. Reads and writes share one if both go to the same server. The
// error comes with nil.
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

// endOperation ends an operation. It drops the connection to a server that is no longer primary.
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

// lookEvery is the interval between two queries for the members.
const lookEvery = 5 * time.Second

// directory is the list of members that clients of the same settings share. One goroutine refreshes it from the
// primary over its own connection, so that clients find members that joined later.
type directory struct {
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu    sync.Mutex
	addrs []string

	schema   sync.Mutex // held while the table is created
	hasTable bool
}

func openDirectory(ctx context.Context, s settings) *directory {
	dir := &directory{addrs: strings.Split(s.hosts, ",")}
	ctx, dir.cancel = context.WithCancel(context.WithoutCancel(ctx))
	dir.ended.Go(func() { dir.refresh(ctx, s) })
	return dir
}

// close stops the directory's goroutine and waits for its end.
func (dir *directory) close() error {
	dir.cancel()
	dir.ended.Wait()
	return nil
}

func (dir *directory) members() []string {
	dir.mu.Lock()
	defer dir.mu.Unlock()
	return slices.Clone(dir.addrs)
}

// refresh queries the members until the directory is closed.
func (dir *directory) refresh(ctx context.Context, s settings) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		dir.lookup(ctx, s)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (dir *directory) lookup(ctx context.Context, s settings) {
	for _, addr := range dir.members() {
		got := queryDirectory(ctx, addr, s)
		if got.err != nil {
			continue
		}
		if !got.standby {
			known, err := directoryOf(ctx, got.conn, dir.members())
			abandon(got.conn)
			if err == nil {
				dir.mu.Lock()
				dir.addrs = known
				dir.mu.Unlock()
			}
			return
		}
		abandon(got.conn)
	}
}
