package cloudsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// DefaultTimeout is how long a server may be silent during a statement.
const DefaultTimeout = 5 * time.Second

// leftOpen is the number of our timeouts after which a server ends an idle transaction. A member that is cut off cannot
// end its own, and the transaction would lock the row of hydra_meta until the server's TCP gives up hours later.
const leftOpen = 4

func limitPool(db *sql.DB, c Config) {
	db.SetMaxOpenConns(c.Readers + 2) // one writes, one copies
	db.SetMaxIdleConns(c.Readers + 2)
	db.SetConnMaxIdleTime(c.Timeout) // well before the server's own bound ends them
}

func connectPostgres(c Config, s *silence) (*sql.DB, error) {
	cfg, err := pgx.ParseConfig(c.URL)
	if err != nil {
		return nil, err
	}
	cfg.DialFunc = s.dial
	end := "SET idle_in_transaction_session_timeout = " + strconv.FormatInt((leftOpen*c.Timeout).Milliseconds(), 10)
	asleep := func(_ context.Context, p stdlib.ShouldPingParams) bool {
		return p.IdleDuration > time.Second && !s.silent.Load() // otherwise the statement detects the silence
	}
	db := stdlib.OpenDB(*cfg, stdlib.OptionShouldPing(asleep), stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, end); err != nil {
			return fmt.Errorf("bounding idle transactions: %w", err)
		}
		return nil
	}))
	limitPool(db, c)
	return db, nil
}

func connectMySQL(c Config, s *silence) (*sql.DB, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	if socket := u.Query().Get("socket"); socket != "" {
		cfg.Net, cfg.Addr = "unix", socket
	}
	cfg.Collation = "utf8mb4_bin"
	// The compare-and-set counts matched rows, not changed ones.
	cfg.ClientFoundRows = true
	if u.Query().Get("tls") != "" {
		cfg.TLSConfig = u.Query().Get("tls")
	}
	cfg.Timeout = c.Timeout
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) { return s.dial(ctx, network, addr) }
	cfg.Params = map[string]string{"wait_timeout": strconv.Itoa(int(max(1, (leftOpen * c.Timeout).Seconds())))}
	cfg.Logger = &mysql.NopLogger{} // errors are returned as well
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	limitPool(db, c)
	return db, nil
}

// ErrSilent means that a server does not answer. TCP waits for a quarter of an hour for a server that was cut off.
var ErrSilent = errors.New("database does not answer")

// silence bounds how long a server may be silent during a statement. It measures incoming bytes below the drivers: a
// statement that returns many rows or waits for a lock may take long, and MySQL's driver commits without a context.
type silence struct {
	limit  atomic.Int64 // ns
	silent atomic.Bool  // the last expected bytes did not arrive
}

func newSilence(limit time.Duration) *silence {
	s := &silence{}
	s.limit.Store(int64(limit))
	return s
}

func (s *silence) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.limit.Load()))
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		s.record(err)
		return nil, err
	}
	return &boundedConn{Conn: conn, silence: s}, nil
}

func (s *silence) record(err error) {
	var timeout net.Error
	switch {
	case err == nil:
		s.silent.Store(false)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		s.silent.Store(true)
	}
}

// wrapError adds ErrSilent to an error that the silence caused; drivers hide the cause.
func (s *silence) wrapError(err error) error {
	if err == nil || !s.silent.Load() || errors.Is(err, ErrSilent) {
		return err
	}
	return fmt.Errorf("%w for %v: %w", ErrSilent, time.Duration(s.limit.Load()), err)
}

// boundedConn bounds each read and write, unless the driver has set a deadline.
type boundedConn struct {
	net.Conn
	silence *silence

	mu             sync.Mutex // orders arm, disarm and the driver's deadlines
	driverDeadline bool
}

func (b *boundedConn) arm(set func(time.Time) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.driverDeadline {
		_ = set(time.Now().Add(time.Duration(b.silence.limit.Load()))) // a closed connection fails anyway
	}
}

// disarm removes the deadline: an idle connection may stay silent.
func (b *boundedConn) disarm(set func(time.Time) error, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.driverDeadline {
		b.silence.record(err)
		_ = set(time.Time{})
	}
}

func (b *boundedConn) Read(p []byte) (int, error) {
	b.arm(b.Conn.SetReadDeadline)
	n, err := b.Conn.Read(p)
	b.disarm(b.Conn.SetReadDeadline, err)
	return n, err
}

func (b *boundedConn) Write(p []byte) (int, error) {
	b.arm(b.Conn.SetWriteDeadline)
	n, err := b.Conn.Write(p)
	if err != nil {
		b.disarm(b.Conn.SetWriteDeadline, err)
	}
	return n, err
}

func (b *boundedConn) setDriverDeadline(t time.Time, set func(time.Time) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.driverDeadline = !t.IsZero()
	return set(t)
}

func (b *boundedConn) SetDeadline(t time.Time) error {
	return b.setDriverDeadline(t, b.Conn.SetDeadline)
}

func (b *boundedConn) SetReadDeadline(t time.Time) error {
	return b.setDriverDeadline(t, b.Conn.SetReadDeadline)
}

func (b *boundedConn) SetWriteDeadline(t time.Time) error {
	return b.setDriverDeadline(t, b.Conn.SetWriteDeadline)
}

// SyscallConn implements syscall.Conn: MySQL's driver checks whether an idle connection was closed.
func (b *boundedConn) SyscallConn() (syscall.RawConn, error) {
	if c, ok := b.Conn.(syscall.Conn); ok {
		return c.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// boundStatement bounds a short statement, so that dead connections do not add up. done wraps the error.
func (s *Store) boundStatement(ctx context.Context) (_ context.Context, done func(*error)) {
	if !s.IsServer() {
		return ctx, func(*error) {}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*s.config.Timeout)
	return ctx, func(err *error) {
		cancel()
		*err = s.silence.wrapError(*err)
	}
}
