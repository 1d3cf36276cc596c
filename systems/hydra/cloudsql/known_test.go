package cloudsql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"skerry/systems/hydra/command"
)

// rewound resets a database to an earlier state: the table "late" does not exist, and hydra_meta has its old contents.
func rewound(t *testing.T, s *Store, to Progress) {
	t.Helper()
	_, _, db, _, err := openPools(s.config, newSilence(DefaultTimeout))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range []string{
		"DELETE FROM hydra_tables WHERE name = 'late'",
		"DROP TABLE late",
		"DELETE FROM a WHERE version > " + fmt.Sprint(to.Applied),
		fmt.Sprintf("UPDATE hydra_meta SET applied = %d, tables_at = %d", to.Applied, to.Schema),
	} {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// testBack resets a database to an earlier state while two stores use it. The first operation of any kind must
// detect the reset, and the lost entries can be applied again.
func testBack(t *testing.T, url func(*testing.T) string) {
	asks := map[string]func(ctx context.Context, s *Store) error{
		"get":      func(ctx context.Context, s *Store) error { _, err := s.Get(ctx, "a", "k2", 0); return err },
		"get_lost": func(ctx context.Context, s *Store) error { _, err := s.Get(ctx, "late", "k", 0); return err },
		"scan": func(ctx context.Context, s *Store) error {
			return s.Scan(ctx, "a", Range{}, func(Row) error { return nil })
		},
		"scan_empty": func(ctx context.Context, s *Store) error {
			return s.Scan(ctx, "a", Range{From: "z"}, func(Row) error { return nil })
		},
		"count": func(ctx context.Context, s *Store) error { _, err := s.Count(ctx, "a", 0); return err },
		"sync":  func(ctx context.Context, s *Store) error { _, err := s.Sync(ctx); return err },
		"scan_lost": func(ctx context.Context, s *Store) error {
			if _, err := s.Get(ctx, "a", "k1", 0); !errors.Is(err, ErrBack) { // detects the reset but does not reload the list of tables
				return err
			}
			return s.Scan(ctx, "late", Range{Least: 4}, func(Row) error { return nil })
		},
		"least": func(ctx context.Context, s *Store) error {
			_, err := s.Progress(ctx) // another caller has noticed
			if err == nil {
				_, err = s.Get(ctx, "a", "k1", 4)
			}
			return err
		},
	}
	for name, ask := range asks {
		t.Run(name, func(t *testing.T) {
			ctx, at := t.Context(), url(t)
			s, other := open(t, at), open(t, at)
			for _, store := range []*Store{s, other} {
				store.SetLog("one", "")
			}
			if _, err := s.Progress(ctx); err != nil {
				t.Fatal(err)
			}
			log := []Entry{
				entry(t, 1, command.Transaction{Writes: []command.Write{write(command.CreateTable, "a", "", "")}}),
				entry(t, 2, command.Transaction{Writes: []command.Write{write(command.Put, "a", "k1", "{}")}}),
				entry(t, 3, command.Transaction{Writes: []command.Write{write(command.CreateTable, "late", "", ""),
					write(command.Put, "late", "k", "{}")}}),
				entry(t, 4, command.Transaction{Writes: []command.Write{write(command.Put, "a", "k2", "{}")}}),
			}
			if _, err := s.Apply(ctx, "x", 0, log[:2]); err != nil {
				t.Fatal(err)
			}
			early, err := s.Progress(ctx)
			if err != nil || early.Log != "one" {
				t.Fatalf("%+v, %v", early, err)
			}
			if _, err := s.Apply(ctx, "x", 2, log[2:]); err != nil {
				t.Fatal(err)
			}
			if _, err := other.Progress(ctx); err != nil || !other.HasTable("late") {
				t.Fatalf("the other store does not know the table, %v", err)
			}
			for _, store := range []*Store{s, other} { // connections that have read the applied index
				for range 2 {
					if row, err := store.Get(ctx, "a", "k2", 4); err != nil || row.Version != 4 {
						t.Fatalf("%+v, %v", row, err)
					}
				}
			}
			rewound(t, s, early)
			if err := ask(ctx, s); !errors.Is(err, ErrBack) {
				t.Errorf("reading from a database that was reset: %v", err)
			}
			if p, err := s.Progress(ctx); err != nil || p.Applied != 2 || s.HasTable("late") {
				t.Errorf("progress %+v, %v; has table late: %v", p, err, s.HasTable("late"))
			}
			if _, err := s.Apply(ctx, "x", 2, log[2:]); err != nil {
				t.Fatal(err)
			}
			if err := ask(ctx, other); err != nil && !errors.Is(err, ErrBack) {
				t.Errorf("reading the progress again: %v", err)
			}
			if _, err := s.Get(ctx, "late", "k", 4); err != nil || !s.HasTable("late") {
				t.Errorf("applying the lost entries: %v", err)
			}
		})
	}
	t.Run("apply", func(t *testing.T) { testBackUnderApplier(t, url(t)) })
}

// testBackUnderApplier applies entries to a database that was reset and has reached the same index again while
// the member's list of tables is outdated.
func testBackUnderApplier(t *testing.T, url string) {
	ctx, s, other := t.Context(), open(t, url), open(t, url)
	first := entry(t, 1, command.Transaction{Writes: []command.Write{write(command.CreateTable, "a", "", "")}})
	late := entry(t, 2, command.Transaction{Writes: []command.Write{write(command.CreateTable, "late", "", "")}})
	if _, err := s.Apply(ctx, "x", 0, []Entry{first}); err != nil {
		t.Fatal(err)
	}
	early, err := s.Progress(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(ctx, "x", 1, []Entry{late}); err != nil {
		t.Fatal(err)
	}
	rewound(t, s, early)
	if _, err := other.Progress(ctx); err != nil {
		t.Fatal(err)
	}
	again := entry(t, 2, late.transactionOf(t))
	if _, err := s.Apply(ctx, "x", 1, []Entry{again}); !errors.Is(err, ErrMoved) {
		t.Errorf("a batch of a member that expects the table to exist: %v", err)
	}
	if _, err := other.Apply(ctx, "y", 1, []Entry{again}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Progress(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(ctx, "x", 2, []Entry{entry(t, 3, command.Transaction{Writes: []command.Write{write(command.Put, "late",
		"k", "{}")}})}); err != nil {
		t.Errorf("the table created by the lost entries: %v", err)
	}
}

func (e Entry) transactionOf(t *testing.T) command.Transaction {
	t.Helper()
	c, err := command.Decode(e.Data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// testLogs checks that a database accepts only entries of the log that it belongs to.
func testLogs(t *testing.T, url string) {
	ctx, s := t.Context(), open(t, url)
	old := entry(t, 1, command.Transaction{Writes: []command.Write{write(command.CreateTable, "a", "", ""),
		write(command.Put, "a", "k", "{}")}})
	if _, err := s.Apply(ctx, "x", 0, []Entry{old}); err != nil { // by a version without log identities
		t.Fatal(err)
	}
	follower := open(t, url)
	s.SetLog("one", "")
	follower.SetLog("one", "")
	if _, err := s.Progress(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(ctx, "x", 1, []Entry{{Index: 2}}); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Progress(ctx); err != nil || p.Log != "one" {
		t.Fatalf("progress %+v, %v", p, err)
	}
	if _, err := follower.Get(ctx, "a", "k", 2); err != nil {
		t.Errorf("a member that has not yet read the database's log identity: %v", err)
	}
	var b bytes.Buffer
	if _, err := s.Save(ctx, &b); err != nil {
		t.Fatal(err)
	}
	empty := open(t, sqliteURL(t))
	if index, err := empty.Load(ctx, bytes.NewReader(b.Bytes())); err != nil || index != 2 {
		t.Fatalf("loaded %d, %v", index, err)
	}
	if p, err := empty.Progress(ctx); err != nil || p.Log != "one" {
		t.Errorf("a database filled from a snapshot: %+v, %v", p, err)
	}
	other := open(t, sqliteURL(t))
	other.SetLog("two", "")
	if _, err := other.Load(ctx, bytes.NewReader(b.Bytes())); !errors.Is(err, ErrLog) {
		t.Errorf("another log's snapshot: %v", err)
	}
	unnamed := open(t, sqliteURL(t))
	if _, err := unnamed.Apply(ctx, "x", 0, []Entry{entry(t, 1, old.transactionOf(t))}); err != nil {
		t.Fatal(err)
	}
	if _, err := unnamed.Load(ctx, bytes.NewReader(b.Bytes())); !errors.Is(err, ErrLog) {
		t.Errorf("loading a snapshot over rows of an unknown log: %v", err)
	}
}
