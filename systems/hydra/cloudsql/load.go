package cloudsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"skerry/systems/hydra/command"
)

// Load replaces the database's rows by a snapshot's in one transaction. Until commit the database serves its old state;
// an error leaves it unchanged. A snapshot that is not newer is read to its end and ignored.
func (s *Store) Load(ctx context.Context, r io.Reader) (index uint64, err error) {
	p, err := s.Progress(ctx)
	if err != nil {
		return 0, err
	}
	l := &loader{ctx: ctx, store: s, before: p.Applied, known: s.cached.Load()}
	index, err = ReadSnapshot(r, Visitor{Begin: l.begin, Table: l.table, Row: l.row, Outcome: l.outcome})
	if err == nil && l.tx != nil {
		err = l.end(index)
	}
	if l.tx != nil && err != nil {
		err = errors.Join(err, rollBack(l.tx))
	}
	if err != nil {
		return 0, fmt.Errorf("rebuilding the database: %w", s.silence.wrapError(err))
	}
	if l.tx != nil {
		_ = s.observe(l.known, observation{index, l.log, &tableSet{index, l.names}}) // the compare-and-set has checked it
	}
	return index, nil
}

type loader struct {
	ctx     context.Context
	store   *Store
	before  uint64
	known   *cachedState
	log     string // log of the database after the load
	tx      *sql.Tx
	names   map[string]bool
	current string
	size    int   // of pending
	pending []any // key, version, value of rows of the current table
	records []outcomeRecord
}

func (l *loader) begin(h Header) (err error) {
	if h.Cluster != l.store.config.Cluster {
		return fmt.Errorf("%w: snapshot of cluster %q", ErrCluster, h.Cluster)
	}
	if l.log = l.store.logOf(l.known); h.Log != "" {
		// Rows of an unknown log stay until ownership is checked.
		if l.log != "" && h.Log != l.log || l.log == "" && l.before > 0 || l.known.log != "" && h.Log != l.known.log {
			return fmt.Errorf("%w: snapshot of log %q, database of log %q", ErrLog, h.Log, l.known.log)
		}
		l.log = h.Log
	}
	if h.Index <= l.before {
		return nil
	}
	l.names = make(map[string]bool)
	for _, name := range h.Tables {
		if err := l.createTable(name); err != nil {
			return err
		}
	}
	if l.tx, err = l.store.write.BeginTx(l.ctx, nil); err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	if err := l.store.advanceApplied(l.ctx, l.tx, l.known, l.log, l.before, h.Index, "snapshot"); err != nil {
		return err
	}
	return l.clearAll()
}

// clearAll removes all rows, tables and outcomes.
func (l *loader) clearAll() error {
	names, err := l.store.listTables(l.ctx, l.tx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := l.clearTable(name); err != nil {
			return err
		}
	}
	return errors.Join(l.exec("DELETE FROM hydra_tables"), l.exec("DELETE FROM hydra_outcomes"))
}

func (l *loader) exec(query string, args ...any) error {
	return l.store.exec(l.ctx, l.tx, query, args...)
}

func (l *loader) createTable(name string) error {
	if strings.HasPrefix(name, systemPrefix) {
		if name != MembersTable {
			return fmt.Errorf("%w: table named %q", ErrSnapshot, name)
		}
	} else if err := command.ValidTable(name); err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	if err := l.store.runDDL(l.ctx, l.store.dialect.createTable(name)); err != nil {
		return fmt.Errorf("creating table %s: %w", name, err)
	}
	l.names[name] = true
	return nil
}

func (l *loader) table(name string) error {
	if l.tx == nil {
		return nil
	}
	if !l.names[name] {
		return fmt.Errorf("%w: table %q is not in its list", ErrSnapshot, name)
	}
	if err := l.flush(); err != nil {
		return err
	}
	l.current = name
	// The table may hold rows although hydra_tables did not list it.
	if err := l.clearTable(name); err != nil {
		return err
	}
	return l.exec("INSERT INTO hydra_tables (name) VALUES (?)", name)
}

const deleteChunk = 20_000

func (l *loader) clearTable(table string) error {
	d := l.store.dialect
	name, key := d.quoteName(table), d.quoteName("key")
	next := d.bind("SELECT "+key+" FROM "+name+" WHERE "+key+" > ? ORDER BY "+key+" LIMIT 1 OFFSET "+strconv.Itoa(deleteChunk), 1)
	for last := ""; l.store.IsServer(); {
		var until string
		err := l.tx.QueryRowContext(l.ctx, next, last).Scan(&until)
		if errors.Is(err, sql.ErrNoRows) {
			break
		}
		if err == nil {
			err = l.exec("DELETE FROM "+name+" WHERE "+key+" <= ?", until)
		}
		if err != nil {
			return fmt.Errorf("emptying %s: %w", table, err)
		}
		last = until
	}
	return l.exec("DELETE FROM " + name)
}

func (l *loader) row(_ string, r Row) error {
	if l.tx == nil {
		return nil
	}
	l.pending = append(l.pending, r.Key, int64(r.Version), string(r.Value))
	l.size += len(r.Value)
	if len(l.pending) < 3*chunks[0] && l.size < statementWeight {
		return nil
	}
	return l.flush()
}

func (l *loader) flush() error {
	if len(l.pending) == 0 {
		return nil
	}
	err := l.store.putRows(l.ctx, l.tx, l.current, l.pending)
	l.pending, l.size = l.pending[:0], 0
	return err
}

func (l *loader) outcome(index uint64, request string, o command.Outcome) error {
	if l.tx == nil {
		return nil
	}
	l.records = append(l.records, outcomeRecord{index, request, o, false})
	if len(l.records) < chunks[0] {
		return nil
	}
	return l.flushOutcomes()
}

func (l *loader) flushOutcomes() error {
	err := l.store.insertOutcomes(l.ctx, l.tx, l.records, 0)
	l.records = l.records[:0]
	return err
}

func (l *loader) end(index uint64) error {
	if err := errors.Join(l.flush(), l.flushOutcomes()); err != nil {
		return err
	}
	if err := l.exec("UPDATE hydra_meta SET tables_at = ?, outcomes_after = ? WHERE id = 1", int64(index), int64(index)); err != nil {
		return err
	}
	if err := l.tx.Commit(); err != nil {
		return fmt.Errorf("committing: %w", err)
	}
	return nil
}

// MembersTable is Hydra's own table of members' interface addresses.
const MembersTable = "hydra_members"

// AssignLog makes the database, which is at p, the start of another log.
func (s *Store) AssignLog(ctx context.Context, p Progress, log string) error {
	query := s.dialect.bind("UPDATE hydra_meta SET log_id = ? WHERE id = 1 AND applied = ? AND log_id = ?", 3)
	done, err := s.write.ExecContext(ctx, query, log, int64(p.Applied), p.Log)
	if err != nil {
		return fmt.Errorf("assigning the database to log %s: %w", log, s.silence.wrapError(err))
	}
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		return errors.Join(fmt.Errorf("%w: a member is applying to it", ErrMoved), err)
	}
	s.SetLog(log, log)
	return nil
}

// Discard removes all of Hydra's rows from the database.
func (s *Store) Discard(ctx context.Context) (err error) {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("emptying the database: %w", s.silence.wrapError(err)), rollBack(tx))
		}
	}()
	l := &loader{ctx: ctx, store: s, tx: tx}
	if err := l.clearAll(); err != nil {
		return err
	}
	err = l.exec("UPDATE hydra_meta SET applied = 0, tables_at = 0, holder = '', log_id = '', outcomes_after = 0 WHERE id = 1")
	if err != nil {
		return err
	}
	return tx.Commit()
}
