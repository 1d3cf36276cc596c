// Package cloudsql keeps a cloud's copy of Hydra's tables in its SQL database: SQLite,
// PostgreSQL, or MariaDB and MySQL. A table of users is a table of the database,
//
//	accounts ( key PRIMARY KEY, version, value )       value: the row as compact JSON
//
// Any SQL client may read the database; only Hydra may write it. Hydra's own tables are
//
//	hydra_meta     ( applied, log_id, ... )    one row: the applied index, the log it belongs to
//	hydra_tables   ( name )
//	hydra_outcomes ( idx, request, outcome )   answers to idempotent and conditional transactions
//
// Entries of the log are applied many in one SQL transaction, which begins with
//
//	UPDATE hydra_meta SET applied = new WHERE applied = old AND tables_at = ... AND log_id = ...
//
// This update applies each entry exactly once. An applier finds the rows and the index as one
// transaction left them, however often it restarts. Of two concurrent appliers the second
// changes no row and rolls back. No lease and no clock is needed.
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

var (
	ErrURL = errors.New("invalid database URL")
	// ErrMoved means that another member has applied entries: nothing was done.
	ErrMoved = errors.New("applied index of the database has moved")
	// ErrBack means that the database went back: a restored copy or lagging replica. Rows read must not be used.
	ErrBack = errors.New("database has gone back")
	// ErrLog means that the database or a snapshot holds the state of another log.
	ErrLog          = errors.New("state belongs to another log")
	ErrCluster      = errors.New("database belongs to another cluster")
	ErrNewer        = errors.New("database was written by a newer version")
	ErrUnknownTable = errors.New("no such table")
	ErrNotFound     = errors.New("no such row")
	// ErrPacket means that the server rejects a statement with the largest row.
	ErrPacket   = errors.New("packet limit of the database is too low")
	ErrSnapshot = errors.New("invalid snapshot")
	ErrEntry    = errors.New("unknown log entry")
)

const Format = 1

// Window is the number of entries for which idempotency keys and outcomes are kept. Counting entries
// instead of time makes all databases forget at the same point.
const Window = 1 << 20

// Config describes a database.
type Config struct {
	// URL is sqlite:PATH, a bare path (SQLite), postgres://... or mysql://user:password@host:port/database (also MariaDB).
	URL string
	// Cluster is the cluster's name, written into an empty database and compared otherwise.
	Cluster string
	// Durable syncs every commit to disk. Without it SQLite may lose its last transactions at a power failure; the log
	// still has them, because it keeps entries until Sync has made them durable. Servers keep their own setting.
	Durable bool
	// Timeout is how long a server may be silent before ErrSilent (0: DefaultTimeout). Statements with rows may take longer.
	Timeout time.Duration
	Readers int
	// Outcomes stores outcomes of conditional transactions for members that share the database, not only those with keys.
	Outcomes bool
}

// Store is an open database.
type Store struct {
	config  Config
	dialect *dialect
	path    string // SQLite file, "" for a server
	write   *sql.DB
	read    *sql.DB
	rows    *rowReaders // SQLite only
	silence *silence
	ready   atomic.Bool // Prepare has succeeded

	mu         sync.Mutex // guards statements
	statements map[statementKey]*sql.Stmt

	cached         atomic.Pointer[cachedState]
	logName        atomic.Pointer[string] // name of the log that is applied
	outcomes       atomic.Bool            // store outcomes of conditional transactions
	statementBytes int                    // bytes per statement of several rows
	pruned         uint64                 // used by the applier only
}

type tableSet struct {
	schema uint64
	names  map[string]bool
}

// Open opens a database and creates Hydra's own tables.
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

// New returns a database without connecting; call Prepare before use.
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
	s := &Store{config: c, dialect: d, path: path, write: write, read: read, silence: silence, statementBytes: statementWeight,
		statements: make(map[statementKey]*sql.Stmt)}
	if path != "" {
		s.rows = newRowReaders(read.Driver(), sqliteDSN(c, path), c.Readers)
	}
	s.cached.Store(&cachedState{tables: &tableSet{names: map[string]bool{}}, stale: true})
	s.outcomes.Store(c.Outcomes)
	return s, nil
}

// Ready reports whether Prepare has succeeded.
func (s *Store) Ready() bool { return s.ready.Load() }

// IsServer reports whether the database is a server, which may be unreachable.
func (s *Store) IsServer() bool { return s.path == "" }

// Prepare creates Hydra's own tables and checks the owner: ErrCluster, ErrNewer.
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
			return fmt.Errorf("creating Hydra's tables: %w", err)
		}
	}
	if err := s.checkPacket(ctx); err != nil {
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
		return fmt.Errorf("%w: format %d, this version supports %d", ErrNewer, p.Format, Format)
	case p.Cluster != s.config.Cluster:
		return fmt.Errorf("%w: %q, not %q", ErrCluster, p.Cluster, s.config.Cluster)
	}
	return nil
}

const closeTimeout = 200 * time.Millisecond

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
		return nil // the server is unreachable
	}
	return errors.Join(errs...)
}

// KeepOutcomes sets Config.Outcomes when members that share the database come or go.
func (s *Store) KeepOutcomes(on bool) { s.outcomes.Store(on) }

// IsLocal reports whether reads take microseconds, without a server.
func (s *Store) IsLocal() bool { return s.path != "" }

// Kind returns sqlite, postgres or mysql.
func (s *Store) Kind() string { return s.dialect.name }

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

// Tables returns the sorted names of users' tables in a database that has applied at least least, or ErrBack.
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

func backError(applied, least uint64) error {
	return fmt.Errorf("%w: from %d to %d", ErrBack, least, applied)
}

const systemPrefix = "hydra_"

// CheckTables returns the entry up to which tables are known (0: stale), and the first of the tables that is missing.
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

// KnownTables returns all tables and the entry up to which they are known, 0 if the list is stale.
func (s *Store) KnownTables() (at uint64, names []string) {
	k := s.cached.Load()
	if k.stale {
		return 0, nil
	}
	return k.applied, slices.Sorted(maps.Keys(k.tables.names))
}

func (s *Store) HasTable(table string) bool { return s.cached.Load().tables.names[table] }

// Sync makes applied entries durable and returns their index, or ErrBack or ErrLog. SQLite's commits
// are in its write-ahead log, whose file can be synced during reads and writes; pages that left it for
// the database file were synced with it.
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
