package hydra

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"skerry/internal/base/unit"
	"skerry/internal/database/postgres"
	"skerry/systems/consensus"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/cloudsql"
	"skerry/systems/hydra/command"
	"skerry/systems/hydra/hydraclient"
	"skerry/test/testkit"
)

// TestWritesWithoutDatabases starts a member without its cloud's database server while no other cloud is reachable.
// Writes that need no database are accepted for existing tables as long as the log has a majority, and are
// applied when the database is back.
func TestWritesWithoutDatabases(t *testing.T) {
	testkit.Need(t, testkit.Installed(postgres.Recipe))
	ctx := t.Context()
	between := testkit.NewRelay(t, startPostgres(t))
	all := planProcesses(t)
	east, west, witness := all[0], all[1], all[2]
	east.config.Database = "postgres://postgres@" + between.Addr() + "/postgres?sslmode=disable"
	east.config.DatabaseTimeout = unit.Duration(time.Second)
	east.config.Timeout = unit.Duration(1500 * time.Millisecond)
	for _, p := range all {
		p.start()
	}
	eventually(t, "the table is created", func() bool { return east.client.CreateTable(ctx, "t", hydraclient.Ack(api.Everywhere)) == nil })
	eventually(t, "the member stores the table name next to its log", func() bool {
		var kept tableCache
		kept.load(east.config.Data)
		return len(kept.Tables) > 0 && kept.Tables[len(kept.Tables)-1] == "t"
	})
	west.kill()
	east.kill()
	between.Set(testkit.Refuse)
	east.start()
	eventually(t, "the remaining members elect a leader", func() bool {
		s, err := witness.client.Status(ctx)
		return err == nil && s.Leader != "" && s.Leader != west.config.Name
	})

	eventually(t, "a write is acknowledged", func() bool {
		_, err := east.client.Put(ctx, "t", "k", map[string]int{"n": 1})
		return err == nil
	})
	if _, err := east.client.Put(ctx, "none", "k", map[string]int{"n": 1}); !errors.Is(err, hydraclient.ErrUnavailable) {
		t.Errorf("a write to an unknown table: %v", err)
	}
	add := api.Transaction{Writes: []api.Write{{Do: command.Add, Table: "t", Key: "k", Value: []byte(`{"n":1}`)}}}
	if _, err := east.client.Transact(ctx, add); !errors.Is(err, hydraclient.ErrUnavailable) {
		t.Errorf("a write whose outcome depends on a row: %v", err)
	}

	between.Set(testkit.Pass)
	eventually(t, "the write is in the database", func() bool {
		var meta hydraclient.Meta
		row, err := east.client.Get(ctx, "t", "k", hydraclient.WithMeta(&meta))
		return err == nil && string(row.Value) == `{"n":1}` && meta.Cloud == "east"
	})
}

// TestDroppedTable writes to a table whose drop was acknowledged, at a member whose database has not applied the
// drop yet. A write that every database discards must not be acknowledged.
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
		eventually(t, "the write is in the log or refused", func() bool { return b.log.Commit() > before || len(wrote) > 0 })
		b.log.release()
		if err := <-wrote; !errors.Is(err, hydraclient.ErrUnknownTable) {
			t.Errorf("ack=%s: a write to a dropped table: %v", ack, err)
		}
	}
}

// TestOutcomeAfterTakeover queries a member that has taken over for the outcome of an entry that the other member
// applied. A discarded write must not be reported as a success.
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
	second.applying.Store(true)
	if o, err := second.resolveOutcome(ctx, index, false); err != nil || o.Code != command.UnknownTable {
		t.Errorf("outcome of a discarded write: %+v, %v", o, err)
	}
	if _, err := operated(t, first.path).ExecContext(ctx, "DELETE FROM hydra_outcomes"); err != nil {
		t.Fatal(err)
	}
	if _, err := operated(t, first.path).ExecContext(ctx, "UPDATE hydra_meta SET outcomes_after = ?", index); err != nil {
		t.Fatal(err)
	}
	var p *api.Problem
	if o, err := second.resolveOutcome(ctx, index, false); !errors.As(err, &p) || p.Code != api.CodeInDoubt {
		t.Errorf("an outcome that is no longer stored: %+v, %v", o, err)
	}
}

// TestEmptyDatabaseIsNotRead checks that a database without applied entries does not report a missing table: a
// local read waits for the first entries.
func TestEmptyDatabaseIsNotRead(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	a := startMember(t, shared, "a", "east", "", nil)
	if err := a.client.CreateTable(ctx, "t", hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.client.Put(ctx, "t", "k", map[string]int{"n": 1}); err != nil {
		t.Fatal(err)
	}
	s, err := cloudsql.Open(ctx, cloudsql.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "hydra.db"), Cluster: "test", Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := shared.member(consensus.Member{ID: MemberID("b"), Name: "b", Site: "west", Role: consensus.Voter})
	l.held = 1
	b := NewNode(Options{Cluster: "test", Name: "b", Cloud: "west"}, s)
	l.node = b
	if err := b.Start(ctx, l); err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	local := api.Consistency{Read: api.Local}
	if b.ReadsInline(local) {
		t.Error("a read of an empty database is reported as quick")
	}
	read := make(chan error, 1)
	go func() {
		_, _, err := b.Get(ctx, "t", "k", local)
		read <- err
	}()
	eventually(t, "somebody waits", b.progress.hasWaiters)
	l.release()
	if err := <-read; err != nil {
		t.Errorf("a read of a database that was empty before: %v", err)
	}
	if !b.ReadsInline(local) {
		t.Error("a read of SQLite is not reported as quick")
	}
}
