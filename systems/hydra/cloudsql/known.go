package cloudsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// cachedState is what a store believes of its database. What a database holds follows from the log
// and the applied index alone, whoever applied it and how often, so that this is all there is
// to believe. A database may go back in time under a member that runs: an asynchronous replica
// takes over, a copy is restored. Without a look at the database's own index
//
//  1. the database is at 1000, table t was made at 995, and the member knows both;
//  2. a replica takes over that has come to 990;
//  3. a read is answered from it as one at 1000: acknowledged writes are missing;
//  4. the next batch does not make t, which the member knows to be there, and the one after
//     writes to a table that the database lacks, for ever.
//
// So every read brings the database's index along in its own statement, every batch begins
// with a compare-and-set of all that is believed, and a step back begins an epoch: what
// statements of the epoch before have seen is not learned any more.
type cachedState struct {
	epoch   uint64
	applied uint64 // the database is at least there, in this epoch
	log     string // whose state it is, "" for nobody's or an old one
	tables  *tableSet
	stale   bool // tables are not those of the database
}

// observation is what a statement has seen of a database.
type observation struct {
	applied uint64
	log     string
	tables  *tableSet // nil: it did not look
}

// observe learns what a statement has seen that began under a belief. ErrBack says that the
// database is not where it was believed to be, ErrLog that it is another log's.
func (s *Store) observe(before *cachedState, now observation) error {
	why := s.compareState(before, now)
	for {
		is := s.cached.Load()
		if is.epoch != before.epoch {
			return why // what was seen may be from before the step back
		}
		next := *is
		switch {
		case errors.Is(why, ErrLog): // what is believed stays, so that nothing is read until somebody accepts it
			next.epoch, next.stale = is.epoch+1, true
		case why != nil:
			next.epoch, next.applied, next.stale = is.epoch+1, now.applied, true
		default:
			next.applied, next.log = max(is.applied, now.applied), now.log
		}
		if now.tables != nil && !errors.Is(why, ErrLog) && (why != nil || is.stale || now.tables.schema >= is.tables.schema) {
			next.tables, next.stale = now.tables, false
		}
		if next == *is || s.cached.CompareAndSwap(is, &next) {
			return why
		}
	}
}

// explainFailure finds out whether a statement failed since the database has gone back: a table may be
// missing that was there. Somebody may have found out already, and not which tables are left:
//
//  1. the database goes back to before table t was made;
//  2. a read of another table sees the index, and what is known of tables is stale;
//  3. a scan of t fails. The database is where it is known to be by now, and that is no answer.
func (s *Store) explainFailure(ctx context.Context, before *cachedState, err error) error {
	if ctx.Err() != nil || errors.Is(s.silence.wrapError(err), ErrSilent) {
		return err
	}
	_, why, failed := s.readState(ctx)
	switch {
	case failed != nil:
		return err
	case why == nil && (before.stale || s.cached.Load().epoch != before.epoch):
		return fmt.Errorf("%w, meanwhile: %w", ErrBack, err)
	case why != nil:
		return why
	}
	return err
}

// compareState tells why what a statement has seen is not what was believed.
func (s *Store) compareState(before *cachedState, now observation) error {
	name := s.logName.Load()
	switch {
	case now.log != before.log && (before.log != "" || name != nil && now.log != *name):
		return fmt.Errorf("%w: %q, not %q", ErrLog, now.log, before.log)
	case now.applied < before.applied:
		return backError(now.applied, before.applied)
	}
	return nil
}

// SetLog has what is applied from now on be a log's, whose the database was found to be when
// it had the name of found: the same, or none.
func (s *Store) SetLog(log, found string) {
	if name := s.logName.Load(); log != "" && (name == nil || *name != log) {
		s.logName.Store(&log)
	}
	for {
		is := s.cached.Load()
		next := *is
		if next.log = found; is.log != found {
			next.epoch, next.applied, next.stale = is.epoch+1, 0, true
		}
		if next == *is || s.cached.CompareAndSwap(is, &next) {
			return
		}
	}
}

// Applied is how far the database is at least, as far as is known.
func (s *Store) Applied() uint64 { return s.cached.Load().applied }

// checkTable returns nil when there is a table in a database that has applied an index at least.
func (k *cachedState) checkTable(table string, least uint64) error {
	switch {
	case k.tables.names[table]:
		return nil
	case k.applied < least:
		return backError(k.applied, least)
	}
	return ErrUnknownTable
}

// logOf is the log that a batch leaves in hydra_meta.
func (s *Store) logOf(before *cachedState) string {
	if name := s.logName.Load(); name != nil {
		return *name
	}
	return before.log
}

// Progress is how far a database is.
type Progress struct {
	Applied uint64
	// Schema is the index of the last change of tables.
	Schema  uint64
	Holder  string // who applied last
	Cluster string
	// Log is the name of the log whose state the database holds; "" for none, or one of a
	// version that gave logs no names.
	Log    string
	Format int
}

// metaColumns are read for a Progress.
const metaColumns = "SELECT applied, tables_at, holder, cluster, log_id, format FROM hydra_meta WHERE id = 1"

func (p *Progress) scan(row *sql.Row) error {
	if err := row.Scan(&p.Applied, &p.Schema, &p.Holder, &p.Cluster, &p.Log, &p.Format); err != nil {
		return fmt.Errorf("reading hydra_meta: %w", err)
	}
	return nil
}

// Progress reads how far the database is, and the list of tables when it is another one than
// before. It may be less far than it was.
func (s *Store) Progress(ctx context.Context) (Progress, error) {
	p, _, err := s.readState(ctx) // whoever asks sees from p what has happened
	return p, err
}

// readState reads a Progress; why tells that it is not what was believed.
func (s *Store) readState(ctx context.Context) (p Progress, why, err error) {
	ctx, done := s.boundStatement(ctx)
	defer done(&err)
	before := s.cached.Load()
	stmt, err := s.readStatement(ctx, statementKey{kind: "progress"}, func() (string, int) { return metaColumns, 0 })
	if err != nil {
		return p, nil, err
	}
	if err := p.scan(stmt.QueryRowContext(ctx)); err != nil {
		return p, nil, err
	}
	now := observation{applied: p.Applied, log: p.Log}
	if before.stale || p.Schema != before.tables.schema || p.Applied < before.applied || p.Log != before.log {
		if p, now.tables, err = s.readTables(ctx); err != nil {
			return p, nil, err
		}
		now.applied, now.log = p.Applied, p.Log
	}
	return p, s.observe(before, now), nil
}

// readTables reads progress and tables as of one moment.
func (s *Store) readTables(ctx context.Context) (p Progress, t *tableSet, err error) {
	tx, err := s.beginSnapshot(ctx)
	if err != nil {
		return p, nil, err
	}
	defer tx.Rollback() // it only reads
	if err := p.scan(tx.QueryRowContext(ctx, metaColumns)); err != nil {
		return p, nil, err
	}
	names, err := s.listTables(ctx, tx)
	return p, &tableSet{p.Schema, names}, err
}

// beginSnapshot begins a transaction that sees one state.
func (s *Store) beginSnapshot(ctx context.Context) (*sql.Tx, error) {
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{Isolation: s.dialect.snapshot, ReadOnly: s.dialect.snapshot != 0})
	if err != nil {
		return nil, fmt.Errorf("beginning to read the database: %w", err)
	}
	return tx, nil
}

// addColumns adds to hydra_meta what versions before did not have. Members of theirs go on with
// it: they name the columns that they use.
func (s *Store) addColumns(ctx context.Context) error {
	have := func() (applied uint64, err error) {
		var log string
		err = s.write.QueryRowContext(ctx, "SELECT applied, log_id FROM hydra_meta WHERE id = 1").Scan(&applied, &log)
		return applied, err
	}
	if _, err := have(); err == nil || errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	var applied uint64
	if err := s.write.QueryRowContext(ctx, "SELECT applied FROM hydra_meta WHERE id = 1").Scan(&applied); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("reading hydra_meta: %w", err)
	}
	// Both columns at once; what is not known of entries until now is in the default.
	added := s.dialect.addedColumns()
	if _, err := s.write.ExecContext(ctx, "ALTER TABLE hydra_meta ADD COLUMN "+added[1]+fmt.Sprintf(" DEFAULT %d", applied)); err != nil && !isDuplicateColumn(err) {
		return fmt.Errorf("adding to hydra_meta: %w", err)
	}
	if _, err := s.write.ExecContext(ctx, "ALTER TABLE hydra_meta ADD COLUMN "+added[0]); err != nil && !isDuplicateColumn(err) {
		return fmt.Errorf("adding to hydra_meta: %w", err)
	}
	if _, err := have(); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("adding to hydra_meta: %w", err)
	}
	return nil
}

// isDuplicateColumn tells whether another member has added a column meanwhile.
func isDuplicateColumn(err error) bool {
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "duplicate column") || strings.Contains(text, "already exists")
}
