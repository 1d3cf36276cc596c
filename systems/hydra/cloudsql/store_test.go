package cloudsql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"skerry/systems/hydra/command"
)

// sqliteURL returns the URL of a new, empty database that a test may open several times.
func sqliteURL(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "hydra.db") }

func open(t *testing.T, url string, change ...func(*Config)) *Store {
	t.Helper()
	c := Config{URL: url, Cluster: "test", Readers: 2}
	for _, f := range change {
		f(&c)
	}
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// entry encodes a transaction.
func entry(t testing.TB, index uint64, transaction command.Transaction) Entry {
	t.Helper()
	if err := transaction.Normalize(); err != nil {
		t.Fatal(err)
	}
	return Entry{index, transaction.Append(nil)}
}

func write(do command.Action, table, key, value string) command.Write {
	return command.Write{Do: do, Table: table, Key: key, Value: []byte(value)}
}

// contents returns the contents of a database as the lines of a snapshot.
func contents(t *testing.T, s *Store) (lines []string) {
	t.Helper()
	var b bytes.Buffer
	if _, err := s.Save(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return snapshotLines(t, &b)
}

func snapshotLines(t *testing.T, b *bytes.Buffer) (lines []string) {
	t.Helper()
	add := func(format string, args ...any) error {
		lines = append(lines, fmt.Sprintf(format, args...))
		return nil
	}
	if _, err := ReadSnapshot(b, Visitor{
		Begin:   func(h Header) error { return add("%s at %d", h.Cluster, h.Index) },
		Table:   func(n string) error { return add("table %s", n) },
		Row:     func(_ string, r Row) error { return add("%q %d %s", r.Key, r.Version, r.Value) },
		Outcome: func(i uint64, r string, o command.Outcome) error { return add("%d %q %+v", i, r, o) },
	}); err != nil {
		t.Fatal(err)
	}
	return lines
}

func testRows(t *testing.T, url string) {
	s, ctx := open(t, url), t.Context()
	if _, err := s.Get(ctx, "accounts", "ada", 0); !errors.Is(err, ErrUnknownTable) {
		t.Fatalf("reading before the table exists: %v", err)
	}
	nasty := `'; DROP TABLE accounts; --"` + "`\\%_é\u2028"
	applied, err := s.Apply(ctx, "one", 0, []Entry{
		{Index: 1},
		entry(t, 2, command.Transaction{Writes: []command.Write{write(command.CreateTable, "accounts", "", "")}}),
		entry(t, 3, command.Transaction{Writes: []command.Write{write(command.Put, "accounts", "ada",
			`{"balance":10,"text":"'; DROP TABLE accounts; --\u0000"}`)}}),
		entry(t, 4, command.Transaction{Writes: []command.Write{write(command.Put, "accounts", nasty, `{"a":1}`)}}),
		entry(t, 5, command.Transaction{Writes: []command.Write{write(command.Put, "accounts", "ada ", `{"trailing":"space"}`)}}),
		entry(t, 6, command.Transaction{Writes: []command.Write{write(command.Put, "accounts", "Ada", `{"upper":"case"}`)}}),
		entry(t, 7, command.Transaction{
			RequestID: "r1",
			Checks:    []command.Check{{Table: "accounts", Key: "ada", Is: command.GreaterOrEqual, Field: "balance", Value: []byte("4")}},
			Writes: []command.Write{write(command.Add, "accounts", "ada", `{"balance":-4}`),
				write(command.Add, "accounts", "bob", `{"balance":4}`)},
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	results := applied.Results
	if got := results[len(results)-1]; got.Outcome.Code != command.OK || !got.Conditional {
		t.Errorf("the transfer: %+v", got)
	}
	again := entry(t, 8, command.Transaction{RequestID: "r1", Writes: []command.Write{write(command.Delete, "accounts", "ada", "")}})
	applied, err = s.Apply(ctx, "one", 7, []Entry{again, {9, again.Data}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range applied.Results {
		if r.Outcome.Version != 7 || r.Outcome.Code != command.OK {
			t.Errorf("a transaction tried again: %+v, want the first one's answer", r.Outcome)
		}
	}
	want := []string{
		"test at 9", "table accounts",
		`"Ada" 6 {"upper":"case"}`,
		`"ada" 7 {"balance":6,"text":"'; DROP TABLE accounts; --\u0000"}`,
		`"ada " 5 {"trailing":"space"}`,
		`"bob" 7 {"balance":4}`,
	}
	got := contents(t, s)
	for _, line := range append(want, fmt.Sprintf("%q 4 {\"a\":1}", nasty)) {
		if !strings.Contains(strings.Join(got, "\n"), line) {
			t.Errorf("%s is missing in\n%s", line, strings.Join(got, "\n"))
		}
	}
	if row, err := s.Get(ctx, "accounts", nasty, 0); err != nil || string(row.Value) != `{"a":1}` {
		t.Errorf("row %q: %s, %v", nasty, row.Value, err)
	}
	if _, err := s.Get(ctx, "accounts", "none", 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("no row: %v", err)
	}
	var keys []string
	if err := s.Scan(ctx, "accounts", Range{From: "ada", Behind: true, Limit: 2},
		func(r Row) error { keys = append(keys, r.Key); return nil }); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"ada ", "bob"}, keys); d != "" {
		t.Error(d)
	}
	if n, err := s.Count(ctx, "accounts", 0); err != nil || n != 5 {
		t.Errorf("count %d, %v", n, err)
	}
	if _, err := s.Apply(ctx, "two", 8, []Entry{{Index: 9}}); !errors.Is(err, ErrMoved) {
		t.Errorf("applying an entry a second time: %v", err)
	}
	if _, err := s.Apply(ctx, "one", 9,
		[]Entry{entry(t, 10, command.Transaction{Writes: []command.Write{write(command.DropTable, "accounts", "", "")}}),
			entry(t, 11, command.Transaction{Writes: []command.Write{write(command.CreateTable, "accounts", "", "")}})}); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Count(ctx, "accounts", 0); err != nil || n != 0 {
		t.Errorf("after drop and create: %d rows, %v", n, err)
	}
	if p, err := s.Progress(ctx); err != nil || p.Applied != 11 || p.Holder != "one" {
		t.Errorf("progress %+v, %v", p, err)
	}
}

func testSnapshot(t *testing.T, url string) {
	ctx := t.Context()
	source := open(t, sqliteURL(t))
	entries := []Entry{entry(t, 1,
		command.Transaction{Writes: []command.Write{write(command.CreateTable, "a", "", ""), write(command.CreateTable, "b", "", "")}})}
	for i := range uint64(500) {
		entries = append(entries, entry(t, i+2, command.Transaction{RequestID: fmt.Sprint("r", i%50), Writes: []command.Write{
			write(command.Put, "a", fmt.Sprint("key", i%50), fmt.Sprintf(`{"n":%d}`, i))}}))
	}
	if _, err := source.Apply(ctx, "x", 0, entries); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	index, err := source.Save(ctx, &b)
	if err != nil || index != 501 {
		t.Fatalf("saved %d, %v", index, err)
	}
	copied := open(t, url)
	if _, err := copied.Apply(ctx, "x", 0, []Entry{
		entry(t, 1, command.Transaction{Writes: []command.Write{write(command.CreateTable, "old", "", "")}}),
		entry(t, 2, command.Transaction{Writes: []command.Write{write(command.Put, "old", "k", "{}")}}),
	}); err != nil {
		t.Fatal(err)
	}
	before := contents(t, copied)
	for _, cut := range []int{0, 10, b.Len() / 2, b.Len() - 1} {
		if _, err := copied.Load(ctx, bytes.NewReader(b.Bytes()[:cut])); !errors.Is(err, ErrSnapshot) {
			t.Errorf("a snapshot cut at %d: %v", cut, err)
		}
	}
	damaged := bytes.Clone(b.Bytes())
	damaged[len(damaged)/2] ^= 1
	if _, err := copied.Load(ctx, bytes.NewReader(damaged)); err == nil {
		t.Error("a damaged snapshot was accepted")
	}
	if d := cmp.Diff(before, contents(t, copied)); d != "" {
		t.Errorf("contents after failed loads: %s", d)
	}
	if index, err := copied.Load(ctx, bytes.NewReader(b.Bytes())); err != nil || index != 501 {
		t.Fatalf("loaded %d, %v", index, err)
	}
	if d := cmp.Diff(contents(t, source), contents(t, copied)); d != "" {
		t.Error(d)
	}
	if copied.HasTable("old") || !copied.HasTable("b") {
		t.Error("the store's list of tables differs from the snapshot's")
	}
	if _, err := copied.Apply(ctx, "x", 501,
		[]Entry{entry(t, 502, command.Transaction{Writes: []command.Write{write(command.Put, "b", "k", "{}")}})}); err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	url, ctx := sqliteURL(t), t.Context()
	s := open(t, url)
	if _, err := Open(ctx, Config{URL: url, Cluster: "other"}); !errors.Is(err, ErrCluster) {
		t.Errorf("another cluster's database: %v", err)
	}
	if _, err := s.write.ExecContext(ctx, "UPDATE hydra_meta SET format = 2"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ctx, Config{URL: url, Cluster: "test"}); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer version's database: %v", err)
	}
	for _, bad := range []string{"oracle:x", "sqlite:", "mysql://%zz"} {
		if _, err := Open(ctx, Config{URL: bad}); !errors.Is(err, ErrURL) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := s.Apply(ctx, "x", 0, []Entry{{Index: 1, Data: []byte("nothing")}}); !errors.Is(err, ErrEntry) {
		t.Errorf("applying an invalid entry: %v", err)
	}
	if got := Redacted("postgres://u:secret@h/db"); strings.Contains(got, "secret") {
		t.Error(got)
	}
}

// testExactlyOnce runs two concurrent appliers over one log, with random restarts and batch sizes, and compares
// the result with a model that applies each entry once.
func testExactlyOnce(t *testing.T, url string) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	const entries, accounts = 150, 5
	log := []Entry{entry(t, 1, command.Transaction{Writes: []command.Write{write(command.CreateTable, "a", "", "")}})}
	for i := uint64(2); i <= entries; i++ {
		from, to := fmt.Sprint("k", r.IntN(accounts)), fmt.Sprint("k", r.IntN(accounts))
		c := command.Transaction{Writes: []command.Write{write(command.Add, "a", from, `{"n":-1}`),
			write(command.Add, "a", to, `{"n":1,"in":1}`)}}
		switch r.IntN(4) {
		case 0:
			c.Checks = []command.Check{{Table: "a", Key: from, Is: command.Greater, Field: "n", Value: []byte("-3")}}
		case 1:
			c.RequestID = fmt.Sprint("r", r.IntN(60))
		}
		log = append(log, entry(t, i, c))
	}
	model := open(t, sqliteURL(t))
	for _, e := range log {
		if _, err := model.Apply(t.Context(), "model", e.Index-1, []Entry{e}); err != nil {
			t.Fatal(err)
		}
	}
	open(t, url) // creates the tables, which both appliers would otherwise create concurrently
	var both sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		own := rand.New(rand.NewPCG(seed, uint64(i)+2))
		both.Go(func() { errs[i] = applier(t.Context(), url, fmt.Sprint("member", i), log, own) })
	}
	both.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(contents(t, model), contents(t, open(t, url))); d != "" {
		t.Error(d)
	}
}

// applier applies a log to its end and restarts at random.
func applier(ctx context.Context, url, name string, log []Entry, r *rand.Rand) error {
	for {
		s, err := Open(ctx, Config{URL: url, Cluster: "test", Readers: 1})
		if err != nil {
			return err
		}
		done, err := life(ctx, s, name, log, r)
		if err := errors.Join(err, s.Close()); err != nil || done {
			return err
		}
	}
}

func life(ctx context.Context, s *Store, name string, log []Entry, r *rand.Rand) (done bool, err error) {
	for range 1 + r.IntN(12) {
		p, err := s.Progress(ctx)
		if err != nil {
			return false, err
		}
		if p.Applied == uint64(len(log)) {
			return true, nil
		}
		batch := log[p.Applied:min(uint64(len(log)), p.Applied+1+r.Uint64N(9))]
		if r.IntN(5) == 0 { // it crashes within the transaction
			if err := s.abandon(ctx, name, p.Applied, batch); err != nil && !errors.Is(err, ErrMoved) {
				return false, err
			}
			return false, nil
		}
		if _, err := s.Apply(ctx, name, p.Applied, batch); err != nil && !errors.Is(err, ErrMoved) {
			return false, err
		}
	}
	return false, nil
}

// abandon applies a batch and does not commit.
func (s *Store) abandon(ctx context.Context, holder string, after uint64, entries []Entry) error {
	var batch []decodedEntry
	for _, e := range entries {
		t, err := command.Decode(e.Data)
		if err != nil {
			return err
		}
		batch = append(batch, decodedEntry{e.Index, &t})
	}
	if err := s.createTables(ctx, s.cached.Load(), batch); err != nil {
		return err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	_, _, err = s.applyBatch(ctx, tx, s.cached.Load(), holder, after, batch)
	return errors.Join(err, tx.Rollback())
}

func FuzzReadSnapshot(f *testing.F) {
	f.Add([]byte(snapshotMagic + "\x01c\x00\x05\x01\x01aT\x01aR\x01k\x03\x02{}E\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = ReadSnapshot(bytes.NewReader(data), Visitor{}) // it must return for any input
	})
}

// TestConcurrentOpen checks that members of a cloud that start together can open its new database file together.
func TestConcurrentOpen(t *testing.T) {
	for range 20 {
		path := filepath.Join(t.TempDir(), "new.db")
		var g errgroup.Group
		for range 6 {
			s, err := New(Config{URL: "sqlite:" + path, Cluster: "test"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			g.Go(func() error { return s.Prepare(t.Context()) })
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}
