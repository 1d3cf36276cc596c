package hydra

import (
	"database/sql"
	"testing"

	"skerry/systems/consensus"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/cloudsql"
	"skerry/systems/hydra/hydraclient"
)

// TestTakeover has the member end that applies to a database which it shares.
func TestTakeover(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	first := startMember(t, shared, "a1", "east", "", nil)
	if err := first.client.CreateTable(ctx, "accounts", hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	second := startMember(t, shared, "a2", "east", first.path, nil)
	if second.lead.Load() || second.Node.away("a1") {
		t.Fatalf("the second member applies: %v, the first one is away: %v", second.lead.Load(), second.Node.away("a1"))
	}
	first.stop()
	shared.mu.Lock()
	first.log.away = true
	shared.mu.Unlock()
	if !second.Node.away("a1") {
		t.Error("the first member is not away")
	}
	if _, err := second.client.Put(ctx, "accounts", "ada", map[string]int{"n": 1}, hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	if !second.lead.Load() {
		t.Error("the second member does not apply")
	}
}

func TestStateOfDatabases(t *testing.T) {
	s, err := cloudsql.Open(t.Context(), cloudsql.Config{URL: "sqlite:" + t.TempDir() + "/hydra.db", Cluster: "test", Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	n := NewNode(Options{Cloud: "east"}, s)
	tests := []struct {
		name           string
		cloud          string
		first, applied uint64
		away           bool
		want           string
	}{
		{"has told nothing of a whole log", "west", 2, 0, false, api.StateServing},
		{"has applied a part of a whole log", "west", 2, 5, false, api.StateServing},
		{"has told nothing of a log that was compacted", "west", 100, 0, false, api.StateUnknown},
		{"lacks what the log has", "west", 100, 99, false, api.StateServing},
		{"lacks more than the log has", "west", 100, 98, false, api.StateCutLoose},
		{"lacks more than the log has, and is away", "west", 100, 98, true, api.StateCutLoose},
		{"is away", "west", 100, 200, true, api.StateUnknown},
		{"is this cloud's and empty", "east", 100, 0, false, api.StateCutLoose},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := consensus.MemberStatus{Member: consensus.Member{Site: tt.cloud}, Connected: !tt.away, Applied: tt.applied}
			if got := n.databaseOf(m, consensus.Status{First: tt.first, Commit: 300}).State; got != tt.want {
				t.Errorf("it is %s, want %s", got, tt.want)
			}
		})
	}
}

// A member that only follows how another applies serves again with the database, without
// having had to apply anything itself.
func TestAFollowerServesAgain(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	first := startMember(t, shared, "a1", "east", "", nil)
	if err := first.client.CreateTable(ctx, "t", hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	second := startMember(t, shared, "a2", "east", first.path, nil)
	operator, err := sql.Open("sqlite", "file:"+first.path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer operator.Close()
	if _, err := operator.ExecContext(ctx, "ALTER TABLE hydra_meta RENAME TO elsewhere"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second says so", func() bool { return second.serving() != nil })
	if _, err := operator.ExecContext(ctx, "ALTER TABLE elsewhere RENAME TO hydra_meta"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second serves again", func() bool { return second.serving() == nil })
	if second.lead.Load() {
		t.Error("it has taken over")
	}
}
