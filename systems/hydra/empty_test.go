package hydra

import (
	"path/filepath"
	"testing"

	"skerry/systems/consensus"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/cloudsql"
	"skerry/systems/hydra/hydraclient"
)

// A database that has applied nothing yet does not say that there is no such table: a local
// read waits until it is one.
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
	local := api.Want{Read: api.Local}
	if b.Quick(local) {
		t.Error("a read of a database that holds nothing is said to wait for nobody")
	}
	read := make(chan error, 1)
	go func() {
		_, _, err := b.Get(ctx, "t", "k", local)
		read <- err
	}()
	eventually(t, "somebody waits", b.progress.awaited)
	l.release()
	if err := <-read; err != nil {
		t.Errorf("a read of a database that was empty: %v", err)
	}
	if !b.Quick(local) {
		t.Error("a read of SQLite is not said to wait for nobody")
	}
}
