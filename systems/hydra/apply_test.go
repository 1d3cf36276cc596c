package hydra

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"skerry/systems/hydra/api"
	"skerry/systems/hydra/hydraclient"
)

// TestRejectedEntryIsIsolated makes one cloud's database reject one row. The entries before it are applied, the
// member reports the entry, the other cloud serves reads, and all entries are applied once the database accepts the row.
func TestRejectedEntryIsIsolated(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	a, b := startMember(t, shared, "a", "east", "", nil), startMember(t, shared, "b", "west", "", nil)
	if err := a.client.CreateTable(ctx, "t", hydraclient.Ack(api.Everywhere)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "b knows a", func() bool { _, ok := b.findSubstitute(); return ok })
	operator := operated(t, b.path)
	if _, err := operator.ExecContext(ctx, "CREATE TRIGGER refuse BEFORE INSERT ON t WHEN NEW.key = 'bad' BEGIN SELECT "+
		"RAISE(ABORT, 'not in this database'); END"); err != nil {
		t.Fatal(err)
	}
	hold(t, b) // so that all entries are in one batch
	var bad api.Written
	for i := range 20 {
		key := fmt.Sprint("k", i)
		if i == 11 {
			key = "bad"
		}
		w, err := a.client.Put(ctx, "t", key, map[string]int{"n": i})
		if err != nil {
			t.Fatal(err)
		}
		if i == 11 {
			bad = w
		}
	}
	b.log.release()
	eventually(t, "the rejected entry is reported", func() bool { return b.Status(ctx).Databases[1].StuckAt == bad.Version })
	s := b.Status(ctx)
	if d := s.Databases[1]; d.Applied != bad.Version-1 || d.State != api.StateDown || !strings.Contains(s.Problem,
		fmt.Sprintf("entry %d cannot be applied", bad.Version)) || !strings.Contains(s.Problem, "not in this database") {
		t.Errorf("status %+v", s)
	}
	var meta hydraclient.Meta
	if row, err := b.client.Get(ctx, "t", "bad", hydraclient.WithMeta(&meta)); err != nil || string(row.Value) != `{"n":11}` ||
		meta.Cloud != "east" {
		t.Errorf("reading the row in that cloud: %s, %+v, %v", row.Value, meta, err)
	}
	if _, err := b.client.Put(ctx, "t", "more", map[string]int{}); err != nil {
		t.Errorf("writing in that cloud: %v", err)
	}
	if _, err := operator.ExecContext(ctx, "DROP TRIGGER refuse"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the member applies entries again", func() bool { return b.checkServing() == nil && b.progress.index() == b.log.Commit() })
	if d := b.Status(ctx).Databases[1]; d.StuckAt != 0 {
		t.Errorf("still stuck at entry %d", d.StuckAt)
	}
	if n, err := b.client.Count(ctx, "t", hydraclient.Read(api.Local)); err != nil || n != 21 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// TestTooLargeTransactionIsRejected checks that a transaction over the limit is rejected with its weight in every cloud.
func TestTooLargeTransactionIsRejected(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	a, b := startMember(t, shared, "a", "east", "", nil), startMember(t, shared, "b", "west", "", nil)
	if err := a.client.CreateTable(ctx, "t", hydraclient.Ack(api.Everywhere)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.client.Put(ctx, "t", "k", map[string]string{"v": strings.Repeat("x", 1<<20-64)},
		hydraclient.Ack(api.Everywhere)); err != nil {
		t.Fatal(err)
	}
	var merges api.Transaction
	for range 4096 { // 8 GiB to read and write
		merges.Writes = append(merges.Writes, api.Write{Do: "merge", Table: "t", Key: "k", Value: []byte(`{"n":1}`)})
	}
	for _, m := range []*member{a, b} {
		if w, err := m.client.Transact(ctx, merges); !errors.Is(err, hydraclient.ErrTooLarge) {
			t.Errorf("at %s: %+v, %v", m.Name, w, err)
		}
	}
	merges.Writes = merges.Writes[:20]
	if _, err := b.client.Transact(ctx, merges, hydraclient.Ack(api.Everywhere)); err != nil {
		t.Errorf("merges of 40 MiB: %v", err)
	}
}
