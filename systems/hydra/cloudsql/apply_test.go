package cloudsql

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/systems/hydra/command"
)

// testWindow checks the end of the window of idempotency keys, for any batching of the log: the last entry that
// gets the first answer, the first entry that is applied again, and which keys are removed.
func testWindow(t *testing.T, url string) {
	ctx, s, other := t.Context(), open(t, url), open(t, sqliteURL(t))
	keyed := func(index uint64, n int) Entry {
		return entry(t, index, command.Transaction{RequestID: "r",
			Writes: []command.Write{write(command.Put, "a", "k", fmt.Sprintf(`{"n":%d}`, n))}})
	}
	const first = 2
	log := []Entry{
		entry(t, 1, command.Transaction{Writes: []command.Write{write(command.CreateTable, "a", "", "")}}),
		keyed(first, 1), keyed(first+Window, 2), keyed(first+Window+1, 3), keyed(first+Window+2, 4),
	}
	var results []Result
	at := uint64(0)
	for _, e := range log { // one by one, with the entries between them
		if e.Index > at+1 {
			if _, err := s.Apply(ctx, "x", at, []Entry{{Index: e.Index - 1}}); err != nil {
				t.Fatal(err)
			}
		}
		done, err := s.Apply(ctx, "x", e.Index-1, []Entry{e})
		if err != nil {
			t.Fatal(err)
		}
		at, results = e.Index, append(results, done.Results...)
	}
	for i, want := range []uint64{1, first, first, first + Window + 1, first + Window + 1} {
		if got := results[i].Outcome.Version; got != want {
			t.Errorf("entry %d has the outcome of %d, want that of %d", log[i].Index, got, want)
		}
	}
	if _, err := other.Apply(ctx, "y", 0, log); err != nil { // all at once
		t.Fatal(err)
	}
	if row, err := other.Get(ctx, "a", "k", at); err != nil || row.Version != first+Window+1 || string(row.Value) != `{"n":3}` {
		t.Errorf("applied at once: %d %s, %v", row.Version, row.Value, err)
	}
	if _, err := s.Apply(ctx, "x", at, []Entry{{Index: 3 * Window}}); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Apply(ctx, "y", at, []Entry{{Index: 3 * Window}}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{fmt.Sprintf("test at %d", 3*Window), "table a", fmt.Sprintf(`"k" %d {"n":3}`, first+Window+1)},
		contents(t, s)); d != "" {
		t.Errorf("after the window's end: %s", d)
	}
	if d := cmp.Diff(contents(t, s), contents(t, other)); d != "" {
		t.Errorf("two databases: %s", d)
	}
}

// testSaveBesideWrites saves snapshots during transfers. Each snapshot must be consistent: no transfer is half done.
func testSaveBesideWrites(t *testing.T, url string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := open(t, url)
	if _, err := s.Apply(ctx, "x", 0, []Entry{entry(t, 1, command.Transaction{Writes: []command.Write{write(command.CreateTable,
		"a", "", ""), write(command.CreateTable, "b", "", "")}})}); err != nil {
		t.Fatal(err)
	}
	moved := make(chan error, 1)
	go func() {
		for i := uint64(2); ; i++ {
			e := entry(t, i, command.Transaction{Writes: []command.Write{write(command.Add, "a", "k", `{"n":-1}`),
				write(command.Add, "b", "k", `{"n":1}`)}})
			if _, err := s.Apply(ctx, "x", i-1, []Entry{e}); err != nil {
				moved <- err
				return
			}
		}
	}()
	last := uint64(0)
	for grown := 0; grown < 5; {
		var b bytes.Buffer
		index, err := s.Save(ctx, &b)
		if err != nil {
			t.Fatal(err)
		}
		sum, newest := 0, uint64(1)
		if _, err := ReadSnapshot(&b, Visitor{Row: func(_ string, r Row) error {
			var v struct{ N int }
			newest = max(newest, r.Version)
			err := json.Unmarshal(r.Value, &v)
			sum += v.N
			return err
		}}); err != nil {
			t.Fatal(err)
		}
		if sum != 0 || newest != index {
			t.Fatalf("a snapshot at %d has a sum of %d, and rows up to %d", index, sum, newest)
		}
		if index > last {
			last, grown = index, grown+1
		}
	}
	cancel()
	if err := <-moved; !errors.Is(err, context.Canceled) && !errors.Is(err, ErrMoved) {
		t.Logf("the last move: %v", err) // it was canceled, which each driver reports in its own words
	}
}

// testWeight applies rows of 1 MiB: as many in a batch as the log holds in 16 MiB, merges of more than a
// transaction may touch, and batches whose merges exceed the weight of one transaction.
func testWeight(t *testing.T, url string) {
	const rows = 40
	ctx, s := t.Context(), open(t, url)
	key := func(i int) string { return fmt.Sprintf("k%03d", i) }
	batch := []Entry{entry(t, 1, command.Transaction{Writes: []command.Write{write(command.CreateTable, "a", "", "")}})}
	big := `{"v":"` + strings.Repeat("x", command.MaxValue-64) + `"}`
	for i := range rows {
		batch = append(batch, entry(t, uint64(i)+2, command.Transaction{Writes: []command.Write{write(command.Put, "a", key(i), big)}}))
	}
	at := uint64(0)
	apply := func(batch []Entry) (results []Result, parts int) {
		t.Helper()
		for last := batch[len(batch)-1].Index; at < last; parts++ {
			done, err := s.Apply(ctx, "x", at, batch[len(batch)-int(last-at):])
			if err != nil {
				t.Fatal(err)
			}
			if p, err := s.Progress(ctx); err != nil || p.Applied != done.Index || done.Index <= at {
				t.Fatalf("applied %d after %d, but the database reports %d, %v", done.Index, at, p.Applied, err)
			}
			at, results = done.Index, append(results, done.Results...)
		}
		return results, parts
	}
	if _, parts := apply(batch); parts < 2 {
		t.Errorf("%d rows of 1 MiB were written in one transaction", rows)
	}
	merges := func(index uint64, from, to int) Entry {
		var c command.Transaction
		for i := from; i < to; i++ {
			c.Writes = append(c.Writes, write(command.Merge, "a", key(i), `{"n":1}`))
		}
		return entry(t, index, c)
	}
	results, parts := apply([]Entry{merges(at+1, 0, rows), merges(at+2, 0, 10), merges(at+3, 10, 20), merges(at+4, 20, 30), {Index: at + 5}})
	if parts < 2 {
		t.Error("60 MiB of rows were changed in one transaction")
	}
	for i, want := range []string{command.TooLarge, command.OK, command.OK, command.OK} {
		if results[i].Outcome.Code != want {
			t.Errorf("transaction %d: %+v, want %s", i, results[i].Outcome, want)
		}
	}
	for _, i := range []int{0, 29, 30, rows - 1} {
		row, err := s.Get(ctx, "a", key(i), at)
		if merged := strings.HasSuffix(string(row.Value), `,"n":1}`); err != nil || merged != (i < 30) || len(row.Value) < len(big) {
			t.Errorf("row %d has %d bytes, merged: %v, %v", i, len(row.Value), merged, err)
		}
	}
}

// testNumbers checks that a number of any size is stored as it was written and compared exactly.
func testNumbers(t *testing.T, url string) {
	s := open(t, url)
	const stored = "123456789012345678901234567890"
	deleteIf := func(index uint64, is command.Condition, value string) Entry {
		return entry(t, index, command.Transaction{
			Checks: []command.Check{{Table: "accounts", Key: "ada", Is: is, Field: "balance", Value: []byte(value)}},
			Writes: []command.Write{write(command.Delete, "accounts", "ada", "")},
		})
	}
	applied, err := s.Apply(t.Context(), "one", 0, []Entry{
		entry(t, 1, command.Transaction{Writes: []command.Write{write(command.CreateTable, "accounts", "", "")}}),
		entry(t, 2, command.Transaction{Writes: []command.Write{write(command.Put, "accounts", "ada", `{"balance":`+stored+`}`)}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	for index, check := range []struct {
		is          command.Condition
		value, want string
	}{
		{command.Equal, "123456789012345678901234567891", command.CheckFailed},
		{command.NotEqual, stored + ".0", command.CheckFailed},
		{command.Greater, stored, command.CheckFailed},
		{command.Equal, stored, command.OK},
	} {
		applied, err = s.Apply(t.Context(), "one", applied.Index, []Entry{deleteIf(uint64(index)+3, check.is, check.value)})
		if err != nil {
			t.Fatal(err)
		}
		if got := applied.Results[0].Outcome.Code; got != check.want {
			t.Errorf("%s %s %s: %s, want %s", stored, check.is, check.value, got, check.want)
		}
	}
}

// TestPowerFailure removes from a SQLite database everything that was not synced when Sync returned. The entries
// that Sync reported as safe must exist, with a torn tail behind them, and applying the later entries of the log
// again must give the same contents.
func TestPowerFailure(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	path := filepath.Join(dir, "hydra.db")
	s := open(t, "sqlite:"+path)
	log := []Entry{entry(t, 1, command.Transaction{Writes: []command.Write{write(command.CreateTable, "a", "", "")}})}
	for i := uint64(2); i <= 400; i++ {
		log = append(log, entry(t, i, command.Transaction{Writes: []command.Write{write(command.Add, "a", fmt.Sprint("k", i%20), `{"n":1}`)}}))
	}
	apply := func(s *Store, from, to int) {
		t.Helper()
		for i := from; i < to; i += 10 {
			if _, err := s.Apply(ctx, "x", uint64(i), log[i:min(i+10, to)]); err != nil {
				t.Fatal(err)
			}
		}
	}
	read := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, synced := range []int{10, 150, 300} {
		t.Run(fmt.Sprint(synced), func(t *testing.T) {
			p, err := s.Progress(ctx)
			if err != nil {
				t.Fatal(err)
			}
			apply(s, int(p.Applied), synced)
			safe, err := s.Sync(ctx)
			if err != nil || safe != uint64(synced) {
				t.Fatalf("safe up to %d, %v", safe, err)
			}
			database, wal := read(path), read(path+"-wal")
			apply(s, synced, synced+50)
			torn := read(path + "-wal")[len(wal):]
			left := filepath.Join(t.TempDir(), "hydra.db")
			for name, b := range map[string][]byte{left: database, left + "-wal": append(wal, torn[:len(torn)/3]...)} {
				if err := os.WriteFile(name, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			after := open(t, "sqlite:"+left)
			at, err := after.Progress(ctx)
			if err != nil || at.Applied < safe || at.Applied >= uint64(synced+50) {
				t.Fatalf("applied index %d after the failure, but %d was reported as safe, %v", at.Applied, safe, err)
			}
			apply(after, int(at.Applied), synced+50)
			if d := cmp.Diff(contents(t, s), contents(t, after)); d != "" {
				t.Error(d)
			}
		})
	}
}
