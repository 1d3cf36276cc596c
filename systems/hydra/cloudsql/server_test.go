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
	// impatience is the timeout for a silent database, calm the one for a responsive database on a busy machine.
	impatience = 150 * time.Millisecond
	calm       = 30 * time.Second
)

// through puts a relay in front of a database and returns the URL of the relay.
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

// TestSilentServerAtStart opens a database whose server accepts connections and never responds.
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

// testSilence drops all packets to a server during each kind of request and in the middle of a transaction.
func testSilence(t *testing.T, direct string) {
	addr, between := through(t, direct)
	// The server closes idle transactions after four times as long.
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
			t.Errorf("%s at an unreachable server: %v", question.name, err)
		}
		between.Set(testkit.Refuse)
		between.Set(testkit.Pass)
	}

	s.silence.limit.Store(int64(calm))
	tx := half(t, s)
	between.Set(testkit.Swallow)
	s.silence.limit.Store(int64(impatience))
	if err := tx.Commit(); err == nil {
		t.Error("a commit at an unreachable server succeeded")
	}
	// Only the database knows the outcome of the commit. In either case, other transactions must proceed, although
	// the server was not notified of the end of that connection.
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
		t.Errorf("applying after a lost connection left a transaction open: %v", err)
	}
}

// half starts a transaction that advances the applied index to 2 and leaves it open.
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
