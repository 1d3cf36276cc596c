package hydra

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skerry/systems/hydra/api"
	"skerry/systems/hydra/hydraclient"
)

// TestAdoptAfterLostLogs removes the logs of all members but not their databases. The members' new log must not
// acknowledge writes that no database would apply. A log adopted from one database has all of its rows in every
// cloud and accepts writes.
func TestAdoptAfterLostLogs(t *testing.T) {
	all, ctx := startProcesses(t), t.Context()
	east := all[0].client
	if err := east.CreateTable(ctx, "t", hydraclient.Ack(api.Everywhere)); err != nil {
		t.Fatal(err)
	}
	const rows = 20
	var last api.Written
	for i := range rows {
		var err error
		if last, err = east.Put(ctx, "t", fmt.Sprint("k", i), map[string]int{"n": i}, hydraclient.Ack(api.Everywhere)); err != nil {
			t.Fatal(err)
		}
	}
	killAll := func() {
		for _, p := range all {
			p.kill()
		}
	}
	loseLogs := func() {
		t.Helper()
		for _, p := range all {
			if err := os.RemoveAll(p.config.logDir()); err != nil {
				t.Fatal(err)
			}
		}
	}
	killAll()
	loseLogs()
	for _, p := range all {
		p.start()
	}
	for _, p := range all[:2] {
		eventually(t, p.config.Name+" refuses its database", func() bool {
			s, err := p.client.Status(ctx)
			return err == nil && strings.Contains(s.Problem, ErrForeign.Error()) && strings.Contains(s.Problem, "adopt")
		})
	}
	if w, err := east.Put(ctx, "t", "new", map[string]int{}); !errors.Is(err, hydraclient.ErrUnavailable) {
		t.Errorf("a write that no database would apply: %+v, %v", w, err)
	}
	if row, err := east.Get(ctx, "t", "k1", hydraclient.Read(api.Local)); !errors.Is(err, hydraclient.ErrUnavailable) {
		t.Errorf("a row of another log: %s, %v", row.Value, err)
	}

	killAll()
	if _, err := Adopt(ctx, all[0].config, nil, false); err == nil || !strings.Contains(err.Error(), "there is a log") {
		t.Errorf("Adopt replaced an existing log: %v", err)
	}
	loseLogs()
	b, err := Adopt(ctx, all[0].config, nil, false)
	if err != nil || b.After < last.Version {
		t.Fatalf("the new log begins at %v, %v; the last row has version %d", b, err, last.Version)
	}
	again, err := ParseLogStart(b.String())
	if err != nil || again != b {
		t.Fatalf("%v, %v", again, err)
	}
	if _, err := Adopt(ctx, all[1].config, &b, false); !errors.Is(err, ErrForeign) {
		t.Errorf("the rows of the other cloud: %v", err)
	}
	for _, p := range all[1:] {
		if _, err := Adopt(ctx, p.config, &b, true); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range all {
		p.start()
	}
	for i, p := range all[:2] {
		eventually(t, p.config.Name+" serves", func() bool { return p.client.Ready(ctx) == nil })
		if n, err := p.client.Count(ctx, "t"); err != nil || n != int64(rows+i) {
			t.Errorf("%s has %d rows, %v", p.config.Name, n, err)
		}
		row, err := p.client.Get(ctx, "t", fmt.Sprint("k", rows-1), hydraclient.Read(api.Local))
		if err != nil || row.Version != last.Version {
			t.Errorf("%s: last row has version %d, %v; want %d", p.config.Name, row.Version, err, last.Version)
		}
		if w, err := p.client.Put(ctx, "t", fmt.Sprint("new", i), map[string]int{},
			hydraclient.Ack(api.Everywhere)); err != nil || w.Version <= b.After {
			t.Errorf("a write at %s: %+v, %v", p.config.Name, w, err)
		}
	}
}

// operated opens a SQLite database as an operator would, concurrently with the members.
func operated(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1) // an attached database belongs to one connection
	t.Cleanup(func() { db.Close() })
	return db
}

// copyOf copies a database in its current state.
func copyOf(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy.db")
	if _, err := operated(t, path).ExecContext(t.Context(), "VACUUM INTO '"+to+"'"); err != nil {
		t.Fatal(err)
	}
	return to
}

// putBack restores a copy over a database in use, in one transaction.
func putBack(t *testing.T, path, from string) {
	t.Helper()
	if err := restore(t.Context(), operated(t, path), from); err != nil {
		t.Fatal(err)
	}
}

func restore(ctx context.Context, db *sql.DB, from string) error {
	if _, err := db.ExecContext(ctx, "ATTACH '"+from+"' AS old"); err != nil {
		return err
	}
	defer db.ExecContext(ctx, "DETACH old")
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	have, err := texts(ctx, tx, "SELECT name FROM main.sqlite_master WHERE type = 'table'")
	if err != nil {
		return err
	}
	had, err := texts(ctx, tx, "SELECT name FROM old.sqlite_master WHERE type = 'table'")
	if err != nil {
		return err
	}
	for _, name := range have {
		do := []string{"DELETE FROM main." + name, "INSERT INTO main." + name + " SELECT * FROM old." + name}
		if !slices.Contains(had, name) {
			do = []string{"DROP TABLE main." + name}
		}
		for _, q := range do {
			if _, err := tx.ExecContext(ctx, q); err != nil {
				return fmt.Errorf("%s: %w", q, err)
			}
		}
	}
	return tx.Commit()
}

func texts(ctx context.Context, tx *sql.Tx, query string) (list []string, err error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, rows.Err()
}

// TestDatabaseGoesBack restores databases to an earlier copy while members run. No read may miss an acknowledged
// write. The lost entries are applied again from the log or, if the log no longer has them, the database is
// rebuilt from another cloud's.
func TestDatabaseGoesBack(t *testing.T) {
	for _, tt := range []struct {
		name     string
		members  int // of the cloud whose database is restored
		compact  bool
		lostByIt string
	}{
		{name: "one member", members: 1},
		{name: "two members", members: 2},
		{name: "the log is compacted", members: 1, compact: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			shared, ctx := newSharedLog(), t.Context()
			shared.name = "one"
			a := startMember(t, shared, "a", "east", "", nil)
			startMember(t, shared, "c", "west", "", nil)
			target := a
			if tt.members == 2 {
				target = startMember(t, shared, "b", "east", a.path, nil)
			}
			put := func(table, key string, n int) {
				t.Helper()
				if _, err := target.client.Put(ctx, table, key, map[string]int{"n": n}, hydraclient.Ack(api.Everywhere)); err != nil {
					t.Fatal(err)
				}
			}
			holds := func(table, key string, n int) {
				t.Helper()
				row, err := target.client.Get(ctx, table, key)
				if want := fmt.Sprintf(`{"n":%d}`, n); err != nil || string(row.Value) != want {
					t.Errorf("row %s of table %s: got %s, %v; want %s", key, table, row.Value, err, want)
				}
			}
			if err := target.client.CreateTable(ctx, "t", hydraclient.Ack(api.Everywhere)); err != nil {
				t.Fatal(err)
			}
			put("t", "k", 1)
			early := copyOf(t, a.path)
			if err := target.client.CreateTable(ctx, "late", hydraclient.Ack(api.Everywhere)); err != nil {
				t.Fatal(err)
			}
			put("t", "k", 2)
			put("late", "x", 3)
			if tt.compact {
				shared.compact(a.log.Commit())
			}

			putBack(t, a.path, early)
			holds("t", "k", 2)
			holds("late", "x", 3)
			if page, err := target.client.Scan(ctx, "late", hydraclient.Page{}); err != nil || len(page.Rows) != 1 {
				t.Errorf("rows of late: %+v, %v", page.Rows, err)
			}
			putBack(t, a.path, early)
			if page, err := target.client.Scan(ctx, "late", hydraclient.Page{}); err != nil || len(page.Rows) != 1 {
				t.Errorf("rows of late after the second restore: %+v, %v", page.Rows, err)
			}
			putBack(t, a.path, early)
			if n, err := target.client.Count(ctx, "t"); err != nil || n != 1 {
				t.Errorf("%d rows of t, %v", n, err)
			}
			putBack(t, a.path, early) // not followed by a request
			again(t, a.path, "late")
			put("late", "y", 4)
			holds("late", "y", 4)
			if tables, err := target.client.Tables(ctx); err != nil || len(tables) != 2 {
				t.Errorf("tables %v, %v", tables, err)
			}
		})
	}
}

// again waits until a table of a SQLite database has a row again.
func again(t *testing.T, path, table string) {
	t.Helper()
	db := operated(t, path)
	eventually(t, "the lost entries are applied again", func() bool {
		var n int
		err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n)
		return err == nil && n == 1
	})
}

// TestStepBackIsReportedOnce lets a plain reader, which does not repair anything, be the first to detect that a
// database was restored. The member must still apply the lost entries.
func TestStepBackIsReportedOnce(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	shared.name = "one"
	a := startMember(t, shared, "a", "east", "", nil)
	if err := a.client.CreateTable(ctx, "before", hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	early, at := copyOf(t, a.path), a.log.Commit()
	if err := a.client.CreateTable(ctx, "t", hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.client.Put(ctx, "t", "k", map[string]int{"n": 1}, hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.store.Get(ctx, "t", "k", 0); err != nil {
		t.Fatal(err)
	}
	a.log.holdFrom(at + 1) // otherwise the member may detect the restore and apply the entry again before the read
	putBack(t, a.path, early)
	if _, err := a.store.Get(ctx, "t", "k", 0); err == nil {
		t.Error("read a row that no longer exists")
	}
	a.log.release()
	again(t, a.path, "t")
}

// TestForeignDatabase starts members with a new log on databases that belong to another log. The members must not
// serve the data, must report the problem, and must not lose any data.
func TestForeignDatabase(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	shared.name = "one"
	a := startMember(t, shared, "a", "east", "", nil)
	if err := a.client.CreateTable(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if _, err := a.client.Put(ctx, "t", fmt.Sprint("k", i), map[string]int{"n": i}, hydraclient.Ack(api.Applied)); err != nil {
			t.Fatal(err)
		}
	}
	a.stop()
	for _, tt := range []struct {
		name, log string
		entries   int
		want      error
		text      string
	}{
		{"another log", "two", 0, ErrForeign, "of one, up to entry"},
		{"another log that is longer", "two", 100, ErrForeign, "of one, up to entry"},
		{"the same log, shorter", "one", 3, ErrAhead, "of a log that ends at"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			other := newSharedLog()
			other.name = tt.log
			b := startMember(t, other, "a", "east", a.path, nil)
			for range tt.entries {
				if _, err := b.log.Propose(ctx, nil); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "the member reports the problem", func() bool { return errors.Is(b.checkServing(), tt.want) })
			s := b.Status(ctx)
			if s.Databases[0].State != api.StateRefused || !strings.Contains(s.Problem, tt.text) || !strings.Contains(s.Problem, "hydra adopt") {
				t.Errorf("status %+v", s)
			}
			if _, err := b.client.Put(ctx, "t", "new", map[string]int{}); !errors.Is(err, hydraclient.ErrUnavailable) {
				t.Errorf("a write: %v", err)
			}
			for _, read := range []api.Read{api.Local, api.Linearizable} {
				short, cancel := context.WithTimeout(ctx, patience/10)
				if row, err := b.client.Get(short, "t", "k1", hydraclient.Read(read)); !errors.Is(err, hydraclient.ErrUnavailable) {
					t.Errorf("a %s read: %s, %v", read, row.Value, err)
				}
				cancel()
			}
		})
	}
}

// TestDatabaseOfAnotherLog replaces a database in use by one of another log. No row of it may be read, and the
// member serves again when its own database is back.
func TestDatabaseOfAnotherLog(t *testing.T) {
	ctx := t.Context()
	fill := func(log string, n int) *member {
		shared := newSharedLog()
		shared.name = log
		m := startMember(t, shared, "a", "east", "", nil)
		if err := m.client.CreateTable(ctx, "t"); err != nil {
			t.Fatal(err)
		}
		for range n {
			if _, err := m.client.Put(ctx, "t", "k", map[string]string{"log": log}, hydraclient.Ack(api.Applied)); err != nil {
				t.Fatal(err)
			}
		}
		return m
	}
	one, two := fill("one", 5), fill("two", 10)
	own, other := copyOf(t, one.path), copyOf(t, two.path)
	putBack(t, one.path, other)
	for range 3 {
		if _, _, err := one.Get(ctx, "t", "k", api.Consistency{Read: api.Local}); err == nil {
			t.Fatal("a row of another log was read")
		}
	}
	eventually(t, "the member reports the problem", func() bool { return errors.Is(one.checkServing(), ErrForeign) })
	putBack(t, one.path, own)
	eventually(t, "the member serves again", func() bool { return one.checkServing() == nil })
	if row, err := one.client.Get(ctx, "t", "k"); err != nil || string(row.Value) != `{"log":"one"}` {
		t.Errorf("%s, %v", row.Value, err)
	}
}
