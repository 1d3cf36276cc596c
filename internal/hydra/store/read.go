package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"skerry/internal/hydra/command"
)

// Row is a row of a table.
type Row struct {
	Key     string
	Version uint64
	Value   []byte // compact JSON
}

// Get reads a row: ErrNotFound, ErrUnknownTable.
func (s *Store) Get(ctx context.Context, table, key string) (_ Row, err error) {
	if !s.Has(table) {
		return Row{}, ErrUnknownTable
	}
	if s.rows != nil {
		row, err := s.rows.get(ctx, s.dialect, table, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			err = fmt.Errorf("reading a row of %s: %w", table, err)
		}
		return row, err
	}
	ctx, done := s.patience(ctx)
	defer done(&err)
	stmt, err := s.reading(ctx, statementKey{kind: "get", table: table}, func() (string, int) { return s.dialect.get(table), 1 })
	if err != nil {
		return Row{}, err
	}
	row := Row{Key: key}
	err = stmt.QueryRowContext(ctx, key).Scan(&row.Version, &row.Value)
	if errors.Is(err, sql.ErrNoRows) {
		return Row{}, ErrNotFound
	}
	if err != nil {
		return Row{}, fmt.Errorf("reading a row of %s: %w", table, err)
	}
	return row, nil
}

// get is the query for a row.
func (d *dialect) get(table string) string {
	return "SELECT " + d.name_("version") + ", " + d.name_("value") + " FROM " + d.name_(table) + " WHERE " + d.name_("key") + " = ?"
}

// Range says which rows a scan visits, in the order of keys' bytes.
type Range struct {
	From  string // the first key; with Behind the one before it
	Until string // the key behind the last one, "" for no end
	// Behind leaves the row with key From out.
	Behind bool
	Limit  int
}

// Scan visits rows.
func (s *Store) Scan(ctx context.Context, table string, r Range, visit func(Row) error) error {
	if !s.Has(table) {
		return ErrUnknownTable
	}
	return s.silence.explain(s.scan(ctx, s.read, table, r, visit))
}

func (s *Store) scan(ctx context.Context, q querier, table string, r Range, visit func(Row) error) error {
	d := s.dialect
	least := " >= ?"
	if r.Behind {
		least = " > ?"
	}
	query := "SELECT " + d.columns() + " FROM " + d.name_(table) + " WHERE " + d.name_("key") + least
	args := []any{r.From}
	if r.Until != "" {
		query += " AND " + d.name_("key") + " < ?"
		args = append(args, r.Until)
	}
	query += " ORDER BY " + d.name_("key")
	if r.Limit > 0 {
		query += " LIMIT ?"
		args = append(args, r.Limit)
	}
	rows, err := q.QueryContext(ctx, d.bind(query, len(args)), args...)
	if err != nil {
		return fmt.Errorf("scanning %s: %w", table, err)
	}
	defer rows.Close()
	for rows.Next() {
		var row Row
		if err := rows.Scan(&row.Key, &row.Version, &row.Value); err != nil {
			return fmt.Errorf("scanning %s: %w", table, err)
		}
		if err := visit(row); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("scanning %s: %w", table, err)
	}
	return nil
}

// Count counts a table's rows.
func (s *Store) Count(ctx context.Context, table string) (int64, error) {
	if !s.Has(table) {
		return 0, ErrUnknownTable
	}
	var n int64
	if err := s.read.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+s.dialect.name_(table)).Scan(&n); err != nil {
		return 0, fmt.Errorf("counting the rows of %s: %w", table, s.silence.explain(err))
	}
	return n, nil
}

// Outcome finds what an entry came to that is applied: false when that is not kept.
func (s *Store) Outcome(ctx context.Context, index uint64) (command.Outcome, bool, error) {
	return s.outcome(ctx, "idx = ?", int64(index))
}

// Answered finds the answer to an idempotency key: false when there is none.
func (s *Store) Answered(ctx context.Context, requestID string) (command.Outcome, bool, error) {
	return s.outcome(ctx, "request = ?", requestID)
}

func (s *Store) outcome(ctx context.Context, where string, arg any) (out command.Outcome, ok bool, err error) {
	ctx, done := s.patience(ctx)
	defer done(&err)
	var text []byte
	query := s.dialect.bind("SELECT outcome FROM hydra_outcomes WHERE "+where+" ORDER BY idx DESC LIMIT 1", 1)
	err = s.read.QueryRowContext(ctx, query, arg).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return out, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return out, false, fmt.Errorf("reading hydra_outcomes: %w", err)
	}
	return out, true, nil
}
