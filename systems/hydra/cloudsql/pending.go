package cloudsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"skerry/internal/base/advice"
	"skerry/systems/hydra/command"
)

// pending is the state of the tables within a batch: rows read so far, and the last state of each written row.
type pending struct {
	ctx     context.Context
	store   *Store
	tx      *sql.Tx
	rows    map[string]*tableRows
	before  *tableSet
	tables  *tableSet
	changed bool // tables were created or dropped
	weight  int  // bytes of rows read and written
	err     error
}

type tableRows struct {
	rows    map[string]*rowState
	cleared bool
}

type rowState struct {
	command.Row
	dirty bool
}

func (o *pending) table(name string) *tableRows {
	t := o.rows[name]
	if t == nil {
		t = &tableRows{rows: make(map[string]*rowState)}
		o.rows[name] = t
	}
	return t
}

func (o *pending) HasTable(name string) bool { return o.tables.names[name] }

func (o *pending) Row(table, key string) command.Row {
	t := o.table(table)
	if r := t.rows[key]; r != nil {
		return r.Row
	}
	if t.cleared || o.err != nil {
		return command.Row{}
	}
	if err := o.fetch(table, []string{key}, math.MaxInt); err != nil {
		o.err = err
		return command.Row{}
	}
	return t.rows[key].Row
}

func (o *pending) SetRow(table, key string, row command.Row) {
	o.weight += len(row.Value)
	o.table(table).rows[key] = &rowState{row, true}
}

func (o *pending) CreateTable(name string) {
	if !o.HasTable(name) {
		o.setTables(name, true)
	}
}

func (o *pending) ClearTable(name string) {
	o.rows[name] = &tableRows{rows: make(map[string]*rowState), cleared: true}
}

// DropTable implements command.State. The database keeps the empty table: a DROP would commit in
// MySQL, and a late DROP by a slow member would destroy a table created since.
func (o *pending) DropTable(name string) {
	if o.HasTable(name) {
		o.ClearTable(name)
		o.setTables(name, false)
	}
}

func (o *pending) setTables(name string, there bool) {
	names := maps.Clone(o.tables.names)
	delete(names, name)
	if there {
		names[name] = true
	}
	o.tables, o.changed = &tableSet{names: names}, true
}

func (o *pending) prefetch(batch []decodedEntry) error {
	want := make(map[string]map[string]bool)
	need := func(table, key string) {
		if !o.HasTable(table) {
			return
		}
		if want[table] == nil {
			want[table] = make(map[string]bool)
		}
		want[table][key] = true
	}
	for _, d := range batch {
		if d.transaction == nil {
			continue
		}
		for i := range d.transaction.Checks {
			need(d.transaction.Checks[i].Table, d.transaction.Checks[i].Key)
		}
		for i := range d.transaction.Writes {
			if w := &d.transaction.Writes[i]; w.Do == command.Merge || w.Do == command.Add {
				need(w.Table, w.Key)
			}
		}
	}
	for _, table := range slices.Sorted(maps.Keys(want)) {
		if err := o.fetch(table, slices.Sorted(maps.Keys(want[table])), prefetchWeight); err != nil {
			return err
		}
	}
	return nil
}

func (o *pending) fetch(table string, keys []string, most int) error {
	d, t := o.store.dialect, o.table(table)
	for len(keys) > 0 && o.weight <= most {
		n := chunkSize(len(keys))
		stmt, err := o.store.writeStatement(o.ctx, statementKey{"fetch", table, n}, func() (string, int) {
			return "SELECT " + d.columns() + " FROM " + d.quoteName(table) + " WHERE " + d.quoteName("key") + " IN (" + placeholders(n) + ")", n
		})
		if err != nil {
			return err
		}
		args := make([]any, n)
		for i, k := range keys[:n] {
			args[i] = k
		}
		rows, err := o.tx.StmtContext(o.ctx, stmt).QueryContext(o.ctx, args...)
		if err != nil {
			return fmt.Errorf("reading rows of %s: %w", table, err)
		}
		found := make(map[string]*rowState, n)
		for o.weight <= most && rows.Next() {
			var key string
			var r rowState
			if err := rows.Scan(&key, &r.Version, &r.Value); err != nil {
				return errors.Join(fmt.Errorf("reading rows of %s: %w", table, err), rows.Close())
			}
			o.weight += len(r.Value)
			found[key] = &r
		}
		whole := o.weight <= most
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return fmt.Errorf("reading rows of %s: %w", table, err)
		}
		for _, k := range keys[:n] {
			if r := found[k]; r != nil {
				t.rows[k] = r
			} else if whole { // otherwise the row may not have been reached
				t.rows[k] = &rowState{}
			}
		}
		keys = keys[n:]
	}
	return nil
}

func (d *dialect) columns() string {
	return d.quoteName("key") + ", " + d.quoteName("version") + ", " + d.quoteName("value")
}

func (o *pending) flush() error {
	if o.changed {
		if err := o.flushTables(); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.rows)) {
		t := o.rows[name]
		if t.cleared {
			if err := o.store.exec(o.ctx, o.tx, "DELETE FROM "+o.store.dialect.quoteName(name)); err != nil {
				return err
			}
		}
		var put []any
		var gone []any
		for _, key := range slices.Sorted(maps.Keys(t.rows)) {
			switch r := t.rows[key]; {
			case !r.dirty:
			case r.Value == nil:
				gone = append(gone, key)
			default:
				put = append(put, key, int64(r.Version), string(r.Value))
			}
		}
		if err := o.store.putRows(o.ctx, o.tx, name, put); err != nil {
			return err
		}
		if t.cleared {
			continue
		}
		if err := o.store.removeRows(o.ctx, o.tx, name, gone); err != nil {
			return err
		}
	}
	return nil
}

func (o *pending) flushTables() error {
	before := o.before.names
	for _, n := range slices.Sorted(maps.Keys(before)) {
		if !o.tables.names[n] {
			if err := o.store.exec(o.ctx, o.tx, "DELETE FROM hydra_tables WHERE name = ?", n); err != nil {
				return err
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(o.tables.names)) {
		if !before[n] {
			if err := o.store.exec(o.ctx, o.tx, "INSERT INTO hydra_tables (name) VALUES (?)", n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) putRows(ctx context.Context, tx *sql.Tx, table string, args []any) error {
	d := s.dialect
	for len(args) > 0 {
		n := s.rowsPerStatement(args)
		stmt, err := s.writeStatement(ctx, statementKey{"put", table, n}, func() (string, int) {
			return "INSERT INTO " + d.quoteName(table) + " (" + d.columns() + ") VALUES " + tuples(n) + d.conflict, 3 * n
		})
		if err != nil {
			return err
		}
		if _, err := tx.StmtContext(ctx, stmt).ExecContext(ctx, args[:3*n]...); err != nil {
			return fmt.Errorf("writing rows of %s: %w", table, err)
		}
		args = args[3*n:]
	}
	return nil
}

func (s *Store) removeRows(ctx context.Context, tx *sql.Tx, table string, keys []any) error {
	d := s.dialect
	for len(keys) > 0 {
		n := chunkSize(len(keys))
		stmt, err := s.writeStatement(ctx, statementKey{"remove", table, n}, func() (string, int) {
			return "DELETE FROM " + d.quoteName(table) + " WHERE " + d.quoteName("key") + " IN (" + placeholders(n) + ")", n
		})
		if err != nil {
			return err
		}
		if _, err := tx.StmtContext(ctx, stmt).ExecContext(ctx, keys[:n]...); err != nil {
			return fmt.Errorf("removing rows of %s: %w", table, err)
		}
		keys = keys[n:]
	}
	return nil
}

// The size of an entry does not bound its work: 4,096 merges of a few bytes may touch rows of
// 1 MiB each, and so read and write 4 GiB. command.MaxWeight bounds the rows of a transaction,
// equally in all clouds. The limits here are local.
const (
	// batchWeight (bytes of rows) ends a batch early.
	batchWeight = 32 << 20
	// prefetchWeight bounds the bytes of rows read in advance.
	prefetchWeight = 16 << 20
	// statementWeight bounds the bytes of a statement that writes several rows.
	statementWeight = 4 << 20
	// leastPacket is the least max_allowed_packet of MySQL that fits the largest row.
	leastPacket = 2 << 20
)

func (s *Store) rowsPerStatement(args []any) int {
	rows := len(args) / 3
	for _, n := range chunks {
		if n <= rows && (n == 1 || rowBytes(args[:3*n]) <= s.statementBytes) {
			return n
		}
	}
	return 1
}

func rowBytes(args []any) (size int) {
	for i := 0; i+2 < len(args); i += 3 {
		key, _ := args[i].(string)
		value, _ := args[i+2].(string)
		size += len(key) + len(value)
	}
	return size
}

func (s *Store) checkPacket(ctx context.Context) error {
	if s.dialect != &mysqlDialect {
		return nil
	}
	var packet int
	if err := s.write.QueryRowContext(ctx, "SELECT @@max_allowed_packet").Scan(&packet); err != nil {
		return fmt.Errorf("reading max_allowed_packet: %w", err)
	}
	if packet < leastPacket {
		return advice.With(fmt.Errorf("%w: max_allowed_packet is %d bytes, a row needs up to %d", ErrPacket, packet, leastPacket),
			"set max_allowed_packet = 16M on the server")
	}
	s.statementBytes = min(s.statementBytes, packet/4)
	return nil
}
