package cloudsql

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"skerry/systems/hydra/command"
)

// Row is a row of a table.
type Row struct {
	Key     string
	Version uint64
	Value   []byte // compact JSON
}

// Get reads a row at index least or later. Errors: ErrNotFound, ErrUnknownTable, ErrBack, ErrLog.
func (s *Store) Get(ctx context.Context, table, key string, least uint64) (_ Row, err error) {
	for {
		before := s.cached.Load()
		if err := before.checkTable(table, least); err != nil {
			return Row{}, err
		}
		f, err := s.findRow(ctx, table, key, before.log, max(least, before.applied))
		if err != nil {
			return Row{}, s.explainFailure(ctx, before, fmt.Errorf("reading a row of %s: %w", table, err))
		}
		again, err := s.verifyIndex(ctx, before, least, f.applied)
		switch {
		case err != nil:
			return Row{}, err
		case again:
		case !f.there:
			return Row{}, ErrNotFound
		default:
			return Row{key, f.version, f.value}, nil
		}
	}
}

func (s *Store) findRow(ctx context.Context, table, key, log string, known uint64) (foundRow, error) {
	if s.rows != nil {
		return s.rows.get(ctx, s.dialect, table, key, log, known)
	}
	return s.queryRow(ctx, table, key, log)
}

// verifyIndex decides whether rows read together with an applied index are valid. It returns ErrBack or ErrLog, or again
// if only the log's name is new. The index is not valid if the database belongs to another log than before.
func (s *Store) verifyIndex(ctx context.Context, before *cachedState, least uint64, applied sql.NullInt64) (again bool, err error) {
	switch {
	case !applied.Valid:
		_, why, err := s.readState(ctx)
		return err == nil && why == nil, errors.Join(why, err) // the name may have just been assigned
	case uint64(applied.Int64) < before.applied:
		return false, s.observe(before, observation{applied: uint64(applied.Int64), log: before.log})
	case uint64(applied.Int64) < least:
		return false, backError(uint64(applied.Int64), least)
	}
	return false, nil
}

type foundRow struct {
	applied sql.NullInt64 // null for another log
	there   bool
	version uint64
	value   []byte
}

func (s *Store) queryRow(ctx context.Context, table, key, log string) (f foundRow, err error) {
	ctx, done := s.boundStatement(ctx)
	defer done(&err)
	stmt, err := s.readStatement(ctx, statementKey{kind: "get", table: table},
		func() (string, int) { return s.dialect.selectRowAndIndex(table), 2 })
	if err != nil {
		return f, err
	}
	var version sql.NullInt64
	switch err := stmt.QueryRowContext(ctx, key, log).Scan(&f.applied, &version, &f.value); {
	case errors.Is(err, sql.ErrNoRows):
		return f, nil
	case err != nil:
		return f, err
	}
	f.there, f.version = version.Valid, uint64(version.Int64)
	return f, nil
}

func (d *dialect) selectRow(table string) string {
	return "SELECT " + d.quoteName("version") + ", " + d.quoteName("value") + " FROM " + d.quoteName(table) + " WHERE " +
		d.quoteName("key") + " = ?"
}

// selectRowAndIndex selects a row with the applied index. No result means another log; a null version means no such key.
func (d *dialect) selectRowAndIndex(table string) string {
	return "SELECT m.applied, t." + d.quoteName("version") + ", t." + d.quoteName("value") + " FROM hydra_meta m LEFT JOIN " +
		d.quoteName(table) + " t ON t." + d.quoteName("key") +
		" = ? WHERE m.id = 1 AND m.log_id = ?"
}

// Range selects the rows of a scan, ordered by the bytes of keys.
type Range struct {
	From   string // first key
	Until  string // end of the range, excluded; "" for no end
	Behind bool
	Limit  int
	Least  uint64 // minimum applied index
}

// Scan visits rows. ErrBack and ErrLog are returned before the first visit.
func (s *Store) Scan(ctx context.Context, table string, r Range, visit func(Row) error) error {
	for {
		before := s.cached.Load()
		if err := before.checkTable(table, r.Least); err != nil {
			return err
		}
		again, err := s.scanChecked(ctx, before, table, r, visit)
		if err != nil || !again {
			return s.silence.wrapError(err)
		}
	}
}

func (s *Store) scanChecked(ctx context.Context, before *cachedState, table string, r Range,
	visit func(Row) error) (again bool, err error) {
	var first, stray bool
	var applied sql.NullInt64
	err = s.scan(ctx, s.read, table, r, &before.log, func(row Row, at sql.NullInt64) error {
		if !first {
			first, applied = true, at
			stray = !at.Valid || uint64(at.Int64) < max(before.applied, r.Least)
		}
		if stray {
			return errStateChanged
		}
		return visit(row)
	})
	switch {
	case stray:
		return s.verifyIndex(ctx, before, r.Least, applied)
	case err != nil && !first:
		return false, s.explainFailure(ctx, before, err)
	case err != nil || first:
		return false, err
	}
	return s.scanEmpty(ctx, before, table, r, visit)
}

var errStateChanged = errors.New("database state changed")

// scanEmpty scans again with a separate read of hydra_meta, because an empty result brings no applied index.
func (s *Store) scanEmpty(ctx context.Context, before *cachedState, table string, r Range, visit func(Row) error) (again bool, err error) {
	tx, err := s.beginSnapshot(ctx)
	if err != nil {
		return false, err
	}
	defer tx.Rollback() // it only reads
	var p Progress
	if err := p.scan(tx.QueryRowContext(ctx, metaColumns)); err != nil {
		return false, err
	}
	if p.Log != before.log || p.Applied < max(before.applied, r.Least) {
		if err := tx.Rollback(); err != nil {
			return false, fmt.Errorf("ending a scan: %w", err)
		}
		return s.verifyIndex(ctx, before, r.Least, sql.NullInt64{Int64: int64(p.Applied), Valid: p.Log == before.log})
	}
	return false, s.scan(ctx, tx, table, r, nil, func(row Row, _ sql.NullInt64) error { return visit(row) })
}

// appliedColumn selects the applied index, null for another log.
const appliedColumn = "(SELECT applied FROM hydra_meta WHERE id = 1 AND log_id = ?)"

func (s *Store) scan(ctx context.Context, q querier, table string, r Range, log *string, visit func(Row, sql.NullInt64) error) error {
	query, args := s.dialect.selectRange(table, r, log)
	rows, err := q.QueryContext(ctx, s.dialect.bind(query, len(args)), args...)
	if err != nil {
		return fmt.Errorf("scanning %s: %w", table, err)
	}
	defer rows.Close()
	for rows.Next() {
		var row Row
		var at sql.NullInt64
		into := []any{&row.Key, &row.Version, &row.Value, &at}
		if log == nil {
			into = into[:3]
		}
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("scanning %s: %w", table, err)
		}
		if err := visit(row, at); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("scanning %s: %w", table, err)
	}
	return nil
}

func (d *dialect) selectRange(table string, r Range, log *string) (query string, args []any) {
	query = "SELECT " + d.columns()
	if log != nil {
		query += ", " + appliedColumn
		args = append(args, *log)
	}
	least := " >= ?"
	if r.Behind {
		least = " > ?"
	}
	query += " FROM " + d.quoteName(table) + " WHERE " + d.quoteName("key") + least
	args = append(args, r.From)
	if r.Until != "" {
		query += " AND " + d.quoteName("key") + " < ?"
		args = append(args, r.Until)
	}
	query += " ORDER BY " + d.quoteName("key")
	if r.Limit > 0 {
		query += " LIMIT ?"
		args = append(args, r.Limit)
	}
	return query, args
}

// Count counts the rows of a table in a database that has applied at least least.
func (s *Store) Count(ctx context.Context, table string, least uint64) (int64, error) {
	query := s.dialect.bind("SELECT COUNT(*), "+appliedColumn+" FROM "+s.dialect.quoteName(table), 1)
	for {
		before := s.cached.Load()
		if err := before.checkTable(table, least); err != nil {
			return 0, err
		}
		var n int64
		var at sql.NullInt64
		if err := s.read.QueryRowContext(ctx, query, before.log).Scan(&n, &at); err != nil {
			return 0, s.explainFailure(ctx, before, fmt.Errorf("counting the rows of %s: %w", table, s.silence.wrapError(err)))
		}
		if again, err := s.verifyIndex(ctx, before, least, at); err != nil || !again {
			return n, err
		}
	}
}

// Outcome returns the outcome of an applied entry, or ErrBack or ErrLog. Most successes are not
// stored. known means that every failure of its time is stored, so an unconditional entry without a
// record succeeded. Records of conditional entries may be pruned.
func (s *Store) Outcome(ctx context.Context, index uint64) (out command.Outcome, found, known bool, err error) {
	ctx, done := s.boundStatement(ctx)
	defer done(&err)
	query := s.dialect.bind("SELECT m.applied, m.outcomes_after, o.outcome FROM hydra_meta m LEFT JOIN hydra_outcomes o ON "+
		"o.idx = ? WHERE m.id = 1 AND m.log_id = ?", 2)
	for {
		before := s.cached.Load()
		var applied sql.NullInt64
		var after uint64
		var text []byte
		err := s.read.QueryRowContext(ctx, query, int64(index), before.log).Scan(&applied, &after, &text)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return out, false, false, fmt.Errorf("reading hydra_outcomes: %w", err)
		}
		if again, err := s.verifyIndex(ctx, before, index, applied); again {
			continue
		} else if err != nil {
			return out, false, false, err
		}
		if text == nil {
			return out, false, index > after && uint64(applied.Int64)-index < Window, nil
		}
		if err := json.Unmarshal(text, &out); err != nil {
			return out, false, false, fmt.Errorf("an outcome in hydra_outcomes: %w", err)
		}
		return out, true, true, nil
	}
}
