package cloudsql

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"testing"
	"time"

	"skerry/systems/hydra/command"
	"skerry/test/testkit"
)

const (
	// impatience is how long a database that is silent may be so, calm how long one that is
	// not: a busy machine takes its time.
	impatience = 150 * time.Millisecond
	calm       = 30 * time.Second
)

// through is a database's URL with a relay before it.
func through(t *testing.T, text string) (string, *testkit.Relay) {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	r := testkit.NewRelay(t, u.Host)
	u.Host = r.Addr()
	return u.String(), r
}

// TestSilentServerAtStart opens a database whose server takes connections and says nothing.
func TestSilentServerAtStart(t *testing.T) {
	addr := testkit.SilentServer(t)
	for _, scheme := range []string{"postgres", "mysql"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := Open(ctx, Config{URL: scheme + "://u:p@" + addr + "/db?sslmode=disable", Cluster: "test", Timeout: impatience})
			if !errors.Is(err, ErrSilent) || ctx.Err() != nil {
				t.Errorf("error %v", err)
			}
		})
	}
}

// testSilence cuts a server off, packets dropped, at each kind of question, and between the
// beginning and the end of a transaction.
func testSilence(t *testing.T, direct string) {
	addr, between := through(t, direct)
	// The server ends what is left open after four times as long.
	s, err := New(Config{URL: addr, Cluster: "test", Timeout: 500 * time.Millisecond, Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx := t.Context()
	s.silence.limit.Store(int64(calm))
	for end := time.Now().Add(calm); ; {
		if err := s.Prepare(ctx); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	make_ := entry(t, 1, command.Transaction{Writes: []command.Write{write(command.CreateTable, "accounts", "", "")}})
	if _, err := s.Apply(ctx, "x", 0, []Entry{make_}); err != nil {
		t.Fatal(err)
	}
	put := entry(t, 2, command.Transaction{Writes: []command.Write{write(command.Put, "accounts", "k", `{"a":1}`)}})
	for _, question := range []struct {
		name string
		ask  func() error
	}{
		{"progress", func() error { _, err := s.Progress(ctx); return err }},
		{"get", func() error { _, err := s.Get(ctx, "accounts", "k", 0); return err }},
		{"scan", func() error { return s.Scan(ctx, "accounts", Range{}, func(Row) error { return nil }) }},
		{"count", func() error { _, err := s.Count(ctx, "accounts", 0); return err }},
		{"apply", func() error { _, err := s.Apply(ctx, "x", 1, []Entry{put}); return err }},
	} {
		between.Set(testkit.Swallow)
		s.silence.limit.Store(int64(impatience))
		if err := question.ask(); !errors.Is(err, ErrSilent) {
			t.Errorf("%s of a server that is cut off: %v", question.name, err)
		}
		between.Set(testkit.Refuse)
		between.Set(testkit.Pass)
	}

	s.silence.limit.Store(int64(calm))
	tx := half(t, s)
	between.Set(testkit.Swallow)
	s.silence.limit.Store(int64(impatience))
	if err := tx.Commit(); err == nil {
		t.Error("a server that is cut off has committed")
	}
	// What the commit came to only the database knows; whatever it is, and though no caller has
	// told the server of the end of that connection, others go on.
	other, err := Open(ctx, Config{URL: direct, Cluster: "test", Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	p, err := other.Progress(ctx)
	if err != nil || p.Applied != 1 {
		t.Fatalf("progress %+v, %v", p, err)
	}
	if _, err := other.Apply(ctx, "y", 1, []Entry{put}); err != nil {
		t.Errorf("after a transaction that a lost connection had left open: %v", err)
	}
}

// half is a transaction that has advanced the applied index to 2, and not ended.
func half(t *testing.T, s *Store) *sql.Tx {
	t.Helper()
	for end := time.Now().Add(calm); ; {
		tx, err := s.write.BeginTx(t.Context(), nil)
		if err == nil {
			if err = s.advanceApplied(t.Context(), tx, s.cached.Load(), "", 1, 2, "lost"); err == nil {
				return tx
			}
			err = errors.Join(err, rollBack(tx))
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
