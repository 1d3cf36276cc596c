// Package cloudsql keeps a cloud's copy of Hydra's tables in its SQL database: SQLite,
// PostgreSQL, or MariaDB and MySQL. A table of users is a table of the database,
//
//	accounts ( key PRIMARY KEY, version, value )       value: the row as compact JSON
//
// so that the database can be read with SQL by whoever likes to; it must be written by
// Hydra alone. Beside them stand
//
//	hydra_meta     ( applied, log_id, ... )    one row: the index that is applied, of which log
//	hydra_tables   ( name )
//	hydra_outcomes ( idx, request, outcome )   answers to idempotent and conditional transactions
//
// Entries of the log are applied many in one SQL transaction, which begins with
//
//	UPDATE hydra_meta SET applied = new WHERE applied = old AND tables_at = ... AND log_id = ...
//
// That update is what makes each entry be applied exactly once: whoever applies, and
// however often it is restarted, finds the rows and the index as one transaction left
// them, and of two that apply at once the second changes no row and rolls back. No lease
// and no clock is needed for it.
package cloudsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"skerry/systems/hydra/command"
)

// Sentinel errors.
var (
	// ErrURL marks a database's URL that cannot be used.
	ErrURL = errors.New("bad database URL")
	// ErrMoved says that somebody else has applied entries meanwhile: nothing was done.
	ErrMoved = errors.New("the database's applied index has moved")
	// ErrBack says that the database is further back than it was: an older copy, or a replica
	// that had not come as far. What was read of it is not to be used.
	ErrBack = errors.New("the database has gone back")
	// ErrLog says that the database, or a snapshot, holds the state of another log.
	ErrLog = errors.New("the state belongs to another log")
	// ErrCluster says that the database holds another cluster's tables.
	ErrCluster = errors.New("the database belongs to another cluster")
	// ErrNewer says that a newer version of Hydra wrote the database.
	ErrNewer = errors.New("the database was written by a newer version")
	// ErrUnknownTable says that there is no such table.
	ErrUnknownTable = errors.New("no such table")
	// ErrNotFound says that there is no such row.
	ErrNotFound = errors.New("no such row")
	// ErrPacket says that a server does not take a statement with the largest row.
	ErrPacket = errors.New("the database takes too little at once")
	// ErrSnapshot says that a snapshot is none, is cut short or damaged.
	ErrSnapshot = errors.New("bad snapshot")
	// ErrEntry says that an entry of the log is none that this version understands.
	ErrEntry = errors.New("an entry of the log is not understood")
)

// Format is the version of the database's own tables.
const Format = 1

// Window is for how many entries of the log an idempotency key is remembered, and an
// outcome kept for the cloud's other members. It is counted in entries, not in time, so
// that all databases forget alike.
const Window = 1 << 20

// Config says which database.
type Config struct {
	// URL is sqlite:PATH, postgres://... or mysql://user:password@host:port/database
	// (MariaDB too); a path by itself is SQLite.
	URL string
	// Cluster is the cluster's identity, written into an empty database and compared
	// with a database that is not.
	Cluster string
	// Durable has every transaction on disk when it is committed. Without it SQLite may
	// lose the last ones when the machine's power fails: the log has them still, since it
	// is told what Sync has made durable. Servers keep their own setting.
	Durable bool
	// Timeout is for how long a server may be silent while it is asked, before its connection
	// is given up with ErrSilent; DefaultTimeout when 0. A statement that brings rows may take
	// longer.
	Timeout time.Duration
	// Readers is the most connections that read; 8 when 0.
	Readers int
	// Outcomes has the outcome of every conditional transaction written down, for other
	// members that share the database; those with an idempotency key always are.
	Outcomes bool
}

// Store is a database that is open.
type Store struct {
	config  Config
	dialect *dialect
	path    string // of SQLite's file, "" for a server
	write   *sql.DB
	read    *sql.DB
	rows    *rowReaders // of SQLite, nil for a server
	silence *silence
	ready   atomic.Bool // Prepare has succeeded

	mu         sync.Mutex // guards statements
	statements map[statementKey]*sql.Stmt

	cached         atomic.Pointer[cachedState]
	logName        atomic.Pointer[string] // of the log that the database belongs to from now on
	outcomes       atomic.Bool            // of conditional transactions are kept
	limitAfter     atomic.Uint64          // entries whose rows may weigh anything
	statementBytes int                    // of several rows that are written at once
	pruned         uint64                 // applier's alone
}

// tableSet is the tables as of a change of them.
type tableSet struct {
	schema uint64 // index of the change
	names  map[string]bool
}

// Open opens a database and makes its own tables where they are missing.
func Open(ctx context.Context, c Config) (*Store, error) {
	s, err := New(c)
	if err != nil {
		return nil, err
	}
	if err := s.Prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// New returns a database that nobody has asked anything yet: it is for use when Prepare has
// succeeded.
func New(c Config) (*Store, error) {
	if c.Readers == 0 {
		c.Readers = 8
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	silence := newSilence(c.Timeout)
	d, path, write, read, err := openPools(c, silence)
	if err != nil {
		return nil, err
	}
	s := &Store{config: c, dialect: d, path: path, write: write, read: read, silence: silence, statementBytes: statementWeight, statements: make(map[statementKey]*sql.Stmt)}
	if path != "" {
		s.rows = newRowReaders(read.Driver(), sqliteDSN(c, path), c.Readers)
	}
	s.cached.Store(&cachedState{tables: &tableSet{names: map[string]bool{}}, stale: true})
	s.outcomes.Store(c.Outcomes)
	return s, nil
}

// Ready tells whether Prepare has succeeded.
func (s *Store) Ready() bool { return s.ready.Load() }

// IsServer tells whether the database is a server's, which may be away.
func (s *Store) IsServer() bool { return s.path == "" }

// Prepare makes the database's own tables where they are missing and checks whose it is:
// ErrCluster, ErrNewer.
func (s *Store) Prepare(ctx context.Context) error {
	if s.ready.Load() {
		return nil
	}
	if err := s.prepare(ctx); err != nil {
		return fmt.Errorf("opening %s: %w", Redacted(s.config.URL), s.silence.wrapError(err))
	}
	s.ready.Store(true)
	return nil
}

func (s *Store) prepare(ctx context.Context) error {
	for _, q := range s.dialect.schema() {
		if err := s.runDDL(ctx, q); err != nil {
			return fmt.Errorf("making hydra's tables: %w", err)
		}
	}
	if err := errors.Join(s.checkPacket(ctx), s.addColumns(ctx)); err != nil {
		return err
	}
	insert := s.dialect.bind(s.dialect.insertOnce, 2)
	if _, err := s.write.ExecContext(ctx, insert, Format, s.config.Cluster); err != nil {
		return fmt.Errorf("writing hydra_meta: %w", err)
	}
	p, err := s.Progress(ctx)
	switch {
	case err != nil:
		return err
	case p.Format > Format:
		return fmt.Errorf("%w: format %d, this version knows %d", ErrNewer, p.Format, Format)
	case p.Cluster != s.config.Cluster:
		return fmt.Errorf("%w: %q, not %q", ErrCluster, p.Cluster, s.config.Cluster)
	}
	return nil
}

// closeTimeout is how long a connection waits for a server that is told of its end.
const closeTimeout = 200 * time.Millisecond

// Close closes the connections.
func (s *Store) Close() error {
	s.silence.limit.Store(int64(closeTimeout))
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, stmt := range s.statements {
		errs = append(errs, stmt.Close())
	}
	clear(s.statements)
	if s.rows != nil {
		errs = append(errs, s.rows.close())
	}
	errs = append(errs, s.read.Close())
	if s.write != s.read {
		errs = append(errs, s.write.Close())
	}
	if s.silence.silent.Load() {
		return nil // nobody was there to be told
	}
	return errors.Join(errs...)
}

// KeepOutcomes sets Config.Outcomes: a member has come that shares the database, or gone.
func (s *Store) KeepOutcomes(on bool) { s.outcomes.Store(on) }

// IsLocal tells whether a row is read in microseconds, without asking a server.
func (s *Store) IsLocal() bool { return s.path != "" }

// Kind is sqlite, postgres or mysql.
func (s *Store) Kind() string { return s.dialect.name }

// querier is a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func (s *Store) listTables(ctx context.Context, q querier) (map[string]bool, error) {
	rows, err := q.QueryContext(ctx, "SELECT name FROM hydra_tables")
	if err != nil {
		return nil, fmt.Errorf("reading hydra_tables: %w", err)
	}
	defer rows.Close()
	names := map[string]bool{}
	for rows.Next() {
		var n string
		if err := rows.Scan(&n); err != nil {
			return nil, fmt.Errorf("reading hydra_tables: %w", err)
		}
		names[n] = true
	}
	return names, rows.Err()
}

// Tables are the names of the tables, in order, of a database that has applied an index at
// least: ErrBack. Those of Hydra itself are left out.
func (s *Store) Tables(least uint64) ([]string, error) {
	k := s.cached.Load()
	if k.applied < least {
		return nil, backError(k.applied, least)
	}
	var names []string
	for n := range k.tables.names {
		if !strings.HasPrefix(n, systemPrefix) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names, nil
}

// backError is an ErrBack.
func backError(applied, least uint64) error {
	return fmt.Errorf("%w: from %d to %d", ErrBack, least, applied)
}

// systemPrefix is what names of Hydra's own tables of rows begin with.
const systemPrefix = "hydra_"

// CheckTables tells up to which entry the tables are known, and of some of them which is not
// there; 0 where what is known is not what the database has.
func (s *Store) CheckTables(tables []string) (at uint64, missing string) {
	k := s.cached.Load()
	for _, t := range tables {
		if !k.tables.names[t] {
			return k.applied, t
		}
	}
	if k.stale {
		return 0, ""
	}
	return k.applied, ""
}

// KnownTables are all tables, and up to which entry they are known; 0 where what is known is not what
// the database has.
func (s *Store) KnownTables() (at uint64, names []string) {
	k := s.cached.Load()
	if k.stale {
		return 0, nil
	}
	return k.applied, slices.Sorted(maps.Keys(k.tables.names))
}

// HasTable tells whether there is a table.
func (s *Store) HasTable(table string) bool { return s.cached.Load().tables.names[table] }

// Sync makes durable what was applied and returns the applied index that is so at least.
// ErrBack and ErrLog say that it is not what was applied. SQLite's commits are in its write-ahead log, whose file is synced beside readers and
// writers alike; what has left that file for the database was synced with it.
func (s *Store) Sync(ctx context.Context) (uint64, error) {
	p, why, err := s.readState(ctx)
	if err := errors.Join(why, err); err != nil || s.config.Durable || s.path == "" {
		return p.Applied, err
	}
	wal, err := os.Open(s.path + "-wal")
	if err != nil {
		return 0, fmt.Errorf("syncing the database: %w", err)
	}
	if err := errors.Join(wal.Sync(), wal.Close()); err != nil {
		return 0, fmt.Errorf("syncing the database: %w", err)
	}
	return p.Applied, nil
}

var _ command.State = (*pending)(nil)
