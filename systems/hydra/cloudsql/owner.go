package cloudsql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Give has the database, which is where p says, belong to another log that goes on from there.
func (s *Store) Give(ctx context.Context, p Progress, log string) error {
	query := s.dialect.bind("UPDATE hydra_meta SET log_id = ? WHERE id = 1 AND applied = ? AND log_id = ?", 3)
	done, err := s.write.ExecContext(ctx, query, log, int64(p.Applied), p.Log)
	if err != nil {
		return fmt.Errorf("giving the database to the log %s: %w", log, s.silence.explain(err))
	}
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		return errors.Join(fmt.Errorf("%w: a member applies to it", ErrMoved), err)
	}
	s.Belong(log, log)
	return nil
}

// Discard empties the database of all that Hydra keeps there: it is one that has applied
// nothing of any log.
func (s *Store) Discard(ctx context.Context) (err error) {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("emptying the database: %w", s.silence.explain(err)), rolledBack(tx))
		}
	}()
	l := &loader{ctx: ctx, store: s, tx: tx}
	names, err := s.listTables(ctx, tx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := l.empty(name); err != nil {
			return err
		}
	}
	for _, q := range []string{
		"DELETE FROM hydra_tables", "DELETE FROM hydra_outcomes",
		"UPDATE hydra_meta SET applied = 0, tables_at = 0, holder = '', log_id = '', outcomes_after = 0 WHERE id = 1",
	} {
		if _, err := tx.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	return tx.Commit()
}
