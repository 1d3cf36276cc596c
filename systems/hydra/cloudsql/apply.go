package cloudsql

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"skerry/internal/base/linger"
	"skerry/systems/hydra/command"
)

// Entry is a log entry. Data is nil for the log's own entries.
type Entry struct {
	Index uint64
	Data  []byte
}

// Result is the outcome of an entry.
type Result struct {
	Index   uint64
	Outcome command.Outcome
	// Conditional outcomes depend on rows, and so are unknown at commit.
	Conditional bool
}

// Applied is the result of a batch.
type Applied struct {
	// Index is the last applied entry. It is below the last given one if the rows were too large for one transaction.
	Index   uint64
	Results []Result
}

// Apply applies entries after the applied index in one SQL transaction. ErrMoved means that the
// database's index is not after; ErrEntry means that an entry cannot be decoded. After an error
// nothing was applied, except that a failed commit may have succeeded; Progress shows whether it did.
func (s *Store) Apply(ctx context.Context, holder string, after uint64, entries []Entry) (_ Applied, err error) {
	if len(entries) == 0 {
		return Applied{Index: after}, nil
	}
	defer func() { err = s.silence.wrapError(err) }()
	batch := make([]decodedEntry, 0, len(entries))
	for _, e := range entries {
		if e.Data == nil {
			batch = append(batch, decodedEntry{index: e.Index})
			continue
		}
		t, err := command.Decode(e.Data)
		if err != nil {
			return Applied{}, fmt.Errorf("%w: %d: %w", ErrEntry, e.Index, err)
		}
		batch = append(batch, decodedEntry{e.Index, &t})
	}
	before := s.cached.Load()
	if before.stale {
		return Applied{}, fmt.Errorf("%w: new applied index not read yet", ErrMoved)
	}
	if err := s.createTables(ctx, before, batch); err != nil {
		return Applied{}, err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return Applied{}, fmt.Errorf("beginning a transaction: %w", err)
	}
	results, now, err := s.applyBatch(ctx, tx, before, holder, after, batch)
	if err != nil {
		return Applied{}, errors.Join(asMoved(err), rollBack(tx))
	}
	if err := tx.Commit(); err != nil {
		return Applied{}, asMoved(fmt.Errorf("committing: %w", err))
	}
	_ = s.observe(before, now) // the compare-and-set has checked it
	return Applied{now.applied, results}, nil
}

// deadlock is MySQL's error code for a transaction that lost a conflict. Galera reports it at commit.
const deadlock = 1213

func asMoved(err error) error {
	var m *mysql.MySQLError
	var p *pgconn.PgError
	if errors.As(err, &m) && m.Number == deadlock || errors.As(err, &p) && (p.Code == "40001" || p.Code == "40P01") {
		return fmt.Errorf("%w: %w", ErrMoved, err)
	}
	return err
}

// exec runs a statement with a placeholder for each argument.
func (s *Store) exec(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
	if _, err := tx.ExecContext(ctx, s.dialect.bind(query, len(args)), args...); err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	return nil
}

func rollBack(tx *sql.Tx) error {
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return fmt.Errorf("rolling back: %w", err)
	}
	return nil
}

type decodedEntry struct {
	index       uint64
	transaction *command.Transaction
}

// createTables creates the batch's new tables before the transaction, because CREATE TABLE commits in
// MySQL. A table that hydra_tables does not list is empty and harmless, whichever member created it.
func (s *Store) createTables(ctx context.Context, before *cachedState, batch []decodedEntry) error {
	for _, d := range batch {
		if d.transaction == nil {
			continue
		}
		for _, w := range d.transaction.Writes {
			if w.Do != command.CreateTable || before.tables.names[w.Table] {
				continue
			}
			if err := s.runDDL(ctx, s.dialect.createTable(w.Table)); err != nil {
				return fmt.Errorf("creating table %s: %w", w.Table, err)
			}
		}
	}
	return nil
}

// defineTries bounds attempts of a statement that other members may run too; definePause is the wait while SQLite is busy.
const (
	defineTries = 3
	definePause = 10 * time.Millisecond
)

// runDDL runs a CREATE ... IF NOT EXISTS. If two run at once, PostgreSQL fails one with a duplicate in
// its catalogue, and a second attempt succeeds. When two connections switch a new file to write-ahead
// logging, SQLite fails one at once regardless of busy_timeout.
func (s *Store) runDDL(ctx context.Context, query string) error {
	begun := time.Now()
	for try := 1; ; try++ {
		_, err := s.write.ExecContext(ctx, query)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case isBusy(err) && time.Since(begun) < busyTimeout:
			if linger.For(ctx, definePause) != nil {
				return err
			}
		case try >= defineTries:
			return err
		}
	}
}

func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

func (s *Store) applyBatch(ctx context.Context, tx *sql.Tx, before *cachedState, holder string, after uint64,
	batch []decodedEntry) (results []Result, now observation, err error) {
	last := batch[len(batch)-1].index
	now.log = s.logOf(before)
	if err := s.advanceApplied(ctx, tx, before, now.log, after, last, holder); err != nil {
		return nil, now, err
	}
	o := &pending{ctx: ctx, store: s, tx: tx, rows: make(map[string]*tableRows), before: before.tables, tables: before.tables}
	if err := o.prefetch(batch); err != nil {
		return nil, now, err
	}
	requests, err := s.findRequests(ctx, tx, batch)
	if err != nil {
		return nil, now, err
	}
	var records []outcomeRecord
	for i, d := range batch {
		if o.weight > batchWeight && i > 0 {
			last = batch[i-1].index
			if err := s.exec(ctx, tx, "UPDATE hydra_meta SET applied = ? WHERE id = 1", int64(last)); err != nil {
				return nil, now, err
			}
			break
		}
		if d.transaction == nil {
			continue
		}
		t := d.transaction
		before, again := requests[t.RequestID]
		if again = again && t.RequestID != "" && d.index-before.index <= Window; again {
			results = append(results, Result{d.index, before.outcome, true})
			records = append(records, outcomeRecord{d.index, "", before.outcome, false})
			continue
		}
		out := command.Evaluate(t, d.index, o)
		if o.err != nil {
			return nil, now, o.err
		}
		conditional := t.Conditional()
		results = append(results, Result{d.index, out, conditional})
		if t.RequestID != "" {
			requests[t.RequestID] = outcomeRecord{d.index, t.RequestID, out, false}
		}
		if conditional || out.Code != command.OK {
			records = append(records, outcomeRecord{d.index, t.RequestID, out, !conditional})
		}
	}
	if err := o.flush(); err != nil {
		return nil, now, err
	}
	if err := s.insertOutcomes(ctx, tx, records, last); err != nil {
		return nil, now, err
	}
	now.applied = last
	if o.changed {
		if err := s.exec(ctx, tx, "UPDATE hydra_meta SET tables_at = ? WHERE id = 1", int64(last)); err != nil {
			return nil, now, err
		}
		now.tables = &tableSet{last, o.tables.names}
	}
	return results, now, nil
}

func (s *Store) advanceApplied(ctx context.Context, tx *sql.Tx, before *cachedState, log string, from, to uint64, holder string) error {
	stmt, err := s.writeStatement(ctx, statementKey{kind: "advance"}, func() (string, int) {
		return "UPDATE hydra_meta SET applied = ?, holder = ?, log_id = ? WHERE id = 1 AND applied = ? AND tables_at = ? AND log_id = ?", 6
	})
	if err != nil {
		return err
	}
	done, err := tx.StmtContext(ctx, stmt).ExecContext(ctx, int64(to), holder, log, int64(from), int64(before.tables.schema), before.log)
	if err != nil {
		return fmt.Errorf("advancing the applied index: %w", err)
	}
	n, err := done.RowsAffected()
	switch {
	case err != nil:
		return fmt.Errorf("advancing the applied index: %w", err)
	case n != 1:
		return fmt.Errorf("%w: want applied index %d, tables of %d", ErrMoved, from, before.tables.schema)
	}
	return nil
}

type outcomeRecord struct {
	index   uint64
	request string
	outcome command.Outcome
	failure bool // failure of an unconditional transaction
}

func (s *Store) findRequests(ctx context.Context, tx *sql.Tx, batch []decodedEntry) (map[string]outcomeRecord, error) {
	known := make(map[string]outcomeRecord)
	var ids []any
	for _, d := range batch {
		if d.transaction != nil && d.transaction.RequestID != "" {
			ids = append(ids, d.transaction.RequestID)
		}
	}
	oldest := int64(batch[0].index) - Window
	for len(ids) > 0 {
		n := chunkSize(len(ids))
		stmt, err := s.writeStatement(ctx, statementKey{"requests", "", n}, func() (string, int) {
			return "SELECT idx, request, outcome FROM hydra_outcomes WHERE idx >= ? AND request IN (" + placeholders(n) + ")", n + 1
		})
		if err != nil {
			return nil, err
		}
		args := append([]any{oldest}, ids[:n]...)
		rows, err := tx.StmtContext(ctx, stmt).QueryContext(ctx, args...)
		if err != nil {
			return nil, fmt.Errorf("finding idempotency keys: %w", err)
		}
		for rows.Next() {
			var r outcomeRecord
			var text []byte
			if err := rows.Scan(&r.index, &r.request, &text); err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			if err := json.Unmarshal(text, &r.outcome); err != nil {
				return nil, errors.Join(fmt.Errorf("an outcome in hydra_outcomes: %w", err), rows.Close())
			}
			if r.index > known[r.request].index {
				known[r.request] = r
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, fmt.Errorf("finding idempotency keys: %w", err)
		}
		ids = ids[n:]
	}
	return known, nil
}

const pruneEvery = 1 << 14

// insertOutcomes stores outcomes and prunes old ones. Failures of unconditional entries (writes to a
// dropped table) are always stored, so that a missing record means success.
func (s *Store) insertOutcomes(ctx context.Context, tx *sql.Tx, records []outcomeRecord, last uint64) error {
	if !s.outcomes.Load() {
		keyed := records[:0]
		for _, r := range records {
			if r.request != "" || r.failure {
				keyed = append(keyed, r)
			}
		}
		records = keyed
	}
	for len(records) > 0 {
		n := chunkSize(len(records))
		stmt, err := s.writeStatement(ctx, statementKey{"keep", "", n}, func() (string, int) {
			return "INSERT INTO hydra_outcomes (idx, request, outcome) VALUES " + tuples(n), 3 * n
		})
		if err != nil {
			return err
		}
		args := make([]any, 0, 3*n)
		for _, r := range records[:n] {
			text, err := json.Marshal(r.outcome)
			if err != nil {
				return fmt.Errorf("storing an outcome: %w", err)
			}
			args = append(args, int64(r.index), sql.NullString{String: r.request, Valid: r.request != ""}, string(text))
		}
		if _, err := tx.StmtContext(ctx, stmt).ExecContext(ctx, args...); err != nil {
			return fmt.Errorf("storing outcomes: %w", err)
		}
		records = records[n:]
	}
	if last > Window && last/pruneEvery != s.pruned/pruneEvery {
		if err := s.exec(ctx, tx, "DELETE FROM hydra_outcomes WHERE idx < ?", int64(last-Window)); err != nil {
			return err
		}
		s.pruned = last
	}
	return nil
}
