package cloudsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// cachedState is the member's view of its database. The database's content follows from the log and the applied index
// alone, so the view needs nothing else. A database may go back in time under a running member: an asynchronous replica
// takes over, or a copy is restored. If reads ignored the database's own index:
//
//  1. The database is at 1000, table t was created at 995, and the member knows both.
//  2. A replica at 990 takes over.
//  3. A read is answered from it as if it were at 1000. Acknowledged writes are missing.
//  4. The next batch does not create t, which the member believes to exist, and every later batch
//     that writes to t fails.
//
// So every read fetches the database's index in the same statement, every batch starts with a compare-and-set of the
// whole view, and a step back starts a new epoch. Observations from statements of an older epoch are ignored.
type cachedState struct {
	epoch   uint64
	applied uint64 // lower bound of the applied index in this epoch
	log     string // log of the state; "" for none
	tables  *tableSet
	stale   bool // tables may differ from the database's
}

type observation struct {
	applied uint64
	log     string
	tables  *tableSet // nil: not read
}

// observe updates the cached state with what a statement read that started in state before. ErrBack
// means that the database went back, ErrLog that it belongs to another log.
func (s *Store) observe(before *cachedState, now observation) error {
	why := s.compareState(before, now)
	for {
		is := s.cached.Load()
		if is.epoch != before.epoch {
			return why // the observation may predate the step back
		}
		next := *is
		switch {
		case errors.Is(why, ErrLog): // keep the state: reads fail until SetLog accepts the database
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

// explainFailure finds out whether a statement failed because the database went back and lost a table.
// Another statement may have detected the step, but not the new list of tables:
//
//  1. The database goes back to before table t was created.
//  2. A read of another table sees the index, and the cached tables become stale.
//  3. A scan of t fails. The applied index equals the cached one, so it explains nothing.
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

// compareState returns ErrLog or ErrBack if now contradicts before.
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

// SetLog sets the log whose entries are applied from now on. found is the name that the database has: the same, or none.
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

// Applied returns a lower bound of the database's applied index.
func (s *Store) Applied() uint64 { return s.cached.Load().applied }

func (k *cachedState) checkTable(table string, least uint64) error {
	switch {
	case k.tables.names[table]:
		return nil
	case k.applied < least:
		return backError(k.applied, least)
	}
	return ErrUnknownTable
}

func (s *Store) logOf(before *cachedState) string {
	if name := s.logName.Load(); name != nil {
		return *name
	}
	return before.log
}

// Progress is the row of hydra_meta.
type Progress struct {
	Applied uint64
	// Schema is the index of the last change of tables.
	Schema  uint64
	Holder  string // last applier
	Cluster string
	// Log is the log whose state the database holds; "" for none.
	Log    string
	Format int
}

const metaColumns = "SELECT applied, tables_at, holder, cluster, log_id, format FROM hydra_meta WHERE id = 1"

func (p *Progress) scan(row *sql.Row) error {
	if err := row.Scan(&p.Applied, &p.Schema, &p.Holder, &p.Cluster, &p.Log, &p.Format); err != nil {
		return fmt.Errorf("reading hydra_meta: %w", err)
	}
	return nil
}

// Progress reads the applied index, and the list of tables if it changed. The index may be lower than before.
func (s *Store) Progress(ctx context.Context) (Progress, error) {
	p, _, err := s.readState(ctx) // the caller compares p
	return p, err
}

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

func (s *Store) beginSnapshot(ctx context.Context) (*sql.Tx, error) {
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{Isolation: s.dialect.snapshot, ReadOnly: s.dialect.snapshot != 0})
	if err != nil {
		return nil, fmt.Errorf("beginning to read the database: %w", err)
	}
	return tx, nil
}
