package cloudsql

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/systems/hydra/command"
)

// testWindow holds idempotency keys to the end of their window: the last entry that has the
// first one's answer, the first that is done anew, whatever batches the log came in, and what
// is removed.
func testWindow(t *testing.T, url string) {
	ctx, s, other := t.Context(), open(t, url), open(t, sqliteURL(t))
	keyed := func(index uint64, n int) Entry {
		return entry(t, index, command.Transaction{RequestID: "r", Writes: []command.Write{write(command.Put, "a", "k", fmt.Sprintf(`{"n":%d}`, n))}})
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
			t.Errorf("entry %d has the answer of %d, want that of %d", log[i].Index, got, want)
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
	if d := cmp.Diff([]string{fmt.Sprintf("test at %d", 3*Window), "table a", fmt.Sprintf(`"k" %d {"n":3}`, first+Window+1)}, contents(t, s)); d != "" {
		t.Errorf("after the window's end: %s", d)
	}
	if d := cmp.Diff(contents(t, s), contents(t, other)); d != "" {
		t.Errorf("two databases: %s", d)
	}
}

// testSaveBesideWrites saves snapshots while money moves: each holds one moment, at which none
// is on its way.
func testSaveBesideWrites(t *testing.T, url string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := open(t, url)
	if _, err := s.Apply(ctx, "x", 0, []Entry{entry(t, 1, command.Transaction{Writes: []command.Write{write(command.CreateTable, "a", "", ""), write(command.CreateTable, "b", "", "")}})}); err != nil {
		t.Fatal(err)
	}
	moved := make(chan error, 1)
	go func() {
		for i := uint64(2); ; i++ {
			e := entry(t, i, command.Transaction{Writes: []command.Write{write(command.Add, "a", "k", `{"n":-1}`), write(command.Add, "b", "k", `{"n":1}`)}})
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
		t.Logf("the last move: %v", err) // it was called off, which drivers say in words of their own
	}
}
