package cloudsql

import (
	"fmt"
	"strings"
	"testing"

	"skerry/systems/hydra/command"
)

// testWeight applies rows of 1 MiB: as many in a batch as the log holds in 16 MiB, merges of
// more than a transaction may touch, and batches whose merges weigh more than one takes.
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
				t.Fatalf("applied %d after %d, the database says %d, %v", done.Index, at, p.Applied, err)
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
	s.BoundAfter(at + 1) // a version without a bound applied the next one
	if results, _ := apply([]Entry{merges(at+1, 0, rows)}); results[0].Outcome.Code != command.OK {
		t.Errorf("before the log had a bound: %+v", results[0].Outcome)
	}
}
