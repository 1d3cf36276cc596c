package hydra

import (
	"errors"
	"testing"

	"skerry/systems/hydra/api"
	"skerry/systems/hydra/command"
	"skerry/systems/hydra/hydraclient"
)

// TestDroppedTable writes to a table whose drop was acknowledged, at a member whose database
// does not know of it yet: what every database discards is not said to be done.
func TestDroppedTable(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	a, b := startMember(t, shared, "a", "east", "", nil), startMember(t, shared, "b", "west", "", nil)
	if err := a.client.CreateTable(ctx, "t", hydraclient.Ack(api.Everywhere)); err != nil {
		t.Fatal(err)
	}
	for _, ack := range api.Acks {
		if err := a.client.CreateTable(ctx, "t", hydraclient.Ack(api.Everywhere)); err != nil {
			t.Fatal(err)
		}
		hold(t, b)
		if err := a.client.DropTable(ctx, "t", hydraclient.Ack(api.Applied)); err != nil {
			t.Fatal(err)
		}
		before := b.log.Commit()
		wrote := make(chan error, 1)
		go func() {
			_, err := b.client.Put(ctx, "t", "k", map[string]int{}, hydraclient.Ack(ack))
			wrote <- err
		}()
		eventually(t, "the write is in the log, or refused", func() bool { return b.log.Commit() > before || len(wrote) > 0 })
		b.log.release()
		if err := <-wrote; !errors.Is(err, hydraclient.ErrUnknownTable) {
			t.Errorf("ack=%s: a write to a table that was dropped: %v", ack, err)
		}
	}
}

// TestOutcomeAfterTakeover asks a member that has taken over what came of an entry that the
// other one applied: a write that was discarded is no success.
func TestOutcomeAfterTakeover(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	first := startMember(t, shared, "a1", "east", "", nil)
	if err := first.client.CreateTable(ctx, "t", hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	put := command.Transaction{Writes: []command.Write{{Do: command.Put, Table: "none", Key: "k", Value: []byte("{}")}}}
	index, err := first.log.Propose(ctx, put.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := first.progress.wait(ctx, index); err != nil {
		t.Fatal(err)
	}
	first.stop()
	second := startMember(t, shared, "a2", "east", first.path, nil)
	if err := second.progress.wait(ctx, index); err != nil {
		t.Fatal(err)
	}
	second.lead.Store(true)
	if o, err := second.resolve(ctx, index, false); err != nil || o.Code != command.UnknownTable {
		t.Errorf("what was discarded: %+v, %v", o, err)
	}
	if _, err := operated(t, first.path).ExecContext(ctx, "DELETE FROM hydra_outcomes"); err != nil {
		t.Fatal(err)
	}
	if _, err := operated(t, first.path).ExecContext(ctx, "UPDATE hydra_meta SET outcomes_after = ?", index); err != nil {
		t.Fatal(err)
	}
	var p *api.Problem
	if o, err := second.resolve(ctx, index, false); !errors.As(err, &p) || p.Code != api.CodeInDoubt {
		t.Errorf("what nobody knows any more: %+v, %v", o, err)
	}
}
