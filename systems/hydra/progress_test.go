package hydra

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"skerry/internal/base/unit"
	"skerry/internal/database"
	"skerry/internal/database/postgres"
	"skerry/systems/consensus"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/cloudsql"
	"skerry/systems/hydra/hydraclient"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// startPostgres starts one of the lab's PostgreSQL servers and returns its address.
func startPostgres(t *testing.T) string {
	t.Helper()
	d := postgres.New()
	in, err := d.Find("", "")
	if err != nil {
		t.Fatal(err)
	}
	nodes := testhost.Loopback(t, 1)
	c, err := d.Start(t.Context(), database.Env{Nodes: nodes, Control: nodes[0], Installation: in, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return strings.Split(c.Properties()[postgres.PropHosts], ",")[0]
}

// TestDatabaseAway starts a member without its cloud's database server, and later drops all packets to the server.
// The log continues, the other cloud serves requests, the status reports the outage, and the entries are applied
// when the server is back.
func TestDatabaseAway(t *testing.T) {
	testkit.Need(t, testkit.Installed(postgres.Recipe))
	ctx := t.Context()
	between := testkit.NewRelay(t, startPostgres(t))
	between.Set(testkit.Refuse)
	all := planProcesses(t)
	east, west, witness := all[0], all[1], all[2]
	east.config.Database = "postgres://postgres@" + between.Addr() + "/postgres?sslmode=disable"
	east.config.DatabaseTimeout = unit.Duration(time.Second)
	for _, p := range all {
		p.start()
	}
	opened := func() api.Database {
		s, err := east.client.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range s.Databases {
			if d.Cloud == "east" {
				return d
			}
		}
		t.Fatalf("no database of east in %+v", s)
		return api.Database{}
	}
	// answered waits until a read at the eastern member returns the row from the given cloud.
	answered := func(want, by string) {
		t.Helper()
		var meta hydraclient.Meta
		eventually(t, "a row is "+want+" from "+by, func() bool {
			row, err := east.client.Get(ctx, "t", "k", hydraclient.WithMeta(&meta))
			return err == nil && string(row.Value) == want && meta.Cloud == by
		})
	}
	put := func(n int) {
		t.Helper()
		eventually(t, "a write is acknowledged", func() bool {
			_, err := east.client.Put(ctx, "t", "k", map[string]int{"n": n})
			return err == nil
		})
	}

	eventually(t, "the table is created", func() bool { return west.client.CreateTable(ctx, "t", hydraclient.Ack(api.Applied)) == nil })
	if d := opened(); d.State != api.StateDown || d.Problem == "" {
		t.Errorf("status of an unreachable database: %+v", d)
	}
	put(1)
	answered(`{"n":1}`, "west")
	west.kill()
	eventually(t, "the remaining members elect a leader", func() bool {
		s, err := witness.client.Status(ctx)
		return err == nil && s.Leader != "" && s.Leader != west.config.Name
	})
	eventually(t, "a read that no member can serve is refused", func() bool {
		_, err := east.client.Get(ctx, "t", "k", hydraclient.Read(api.Local))
		return errors.Is(err, hydraclient.ErrUnavailable)
	})

	between.Set(testkit.Pass)
	answered(`{"n":1}`, "east")
	west.start()
	put(2)
	answered(`{"n":2}`, "east")

	between.Set(testkit.Swallow)
	eventually(t, "the other cloud serves reads", func() bool {
		var meta hydraclient.Meta
		_, err := east.client.Get(ctx, "t", "k", hydraclient.Read(api.Local), hydraclient.WithMeta(&meta))
		return err == nil && meta.Cloud == "west"
	})
	eventually(t, "the status reports the silent database", func() bool {
		d := opened()
		return d.State == api.StateDown && strings.Contains(d.Problem, "does not answer")
	})
	put(3)
	answered(`{"n":3}`, "west")
	between.Set(testkit.Pass)
	answered(`{"n":3}`, "east")
}

// TestTakeover stops the member that applies entries to a shared database.
func TestTakeover(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	first := startMember(t, shared, "a1", "east", "", nil)
	if err := first.client.CreateTable(ctx, "accounts", hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	second := startMember(t, shared, "a2", "east", first.path, nil)
	if second.applying.Load() || second.Node.isUnreachable("a1") {
		t.Fatalf("the second member applies: %v, the first member is unreachable: %v", second.applying.Load(), second.Node.isUnreachable("a1"))
	}
	first.stop()
	shared.mu.Lock()
	first.log.away = true
	shared.mu.Unlock()
	if !second.Node.isUnreachable("a1") {
		t.Error("the first member is not reported as unreachable")
	}
	if _, err := second.client.Put(ctx, "accounts", "ada", map[string]int{"n": 1}, hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	if !second.applying.Load() {
		t.Error("the second member did not take over")
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
		{"no progress known, log complete", "west", 2, 0, false, api.StateServing},
		{"behind, log complete", "west", 2, 5, false, api.StateServing},
		{"no progress known, log compacted", "west", 100, 0, false, api.StateUnknown},
		{"behind, log has the missing entries", "west", 100, 99, false, api.StateServing},
		{"behind, log lacks missing entries", "west", 100, 98, false, api.StateCutLoose},
		{"behind, log lacks missing entries, unreachable", "west", 100, 98, true, api.StateCutLoose},
		{"is away", "west", 100, 200, true, api.StateUnknown},
		{"empty database of this cloud", "east", 100, 0, false, api.StateCutLoose},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := consensus.MemberStatus{Member: consensus.Member{Site: tt.cloud}, Connected: !tt.away, Applied: tt.applied}
			if got := n.describeDatabase(m, consensus.Status{First: tt.first, Commit: 300}).State; got != tt.want {
				t.Errorf("got state %s, want %s", got, tt.want)
			}
		})
	}
}

// TestFollowerRecovers checks that a member that does not apply serves again as soon as the database is back, without
// applying an entry itself.
func TestFollowerRecovers(t *testing.T) {
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
	eventually(t, "the second member reports a problem", func() bool { return second.checkServing() != nil })
	if _, err := operator.ExecContext(ctx, "ALTER TABLE elsewhere RENAME TO hydra_meta"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second member serves again", func() bool { return second.checkServing() == nil })
	if second.applying.Load() {
		t.Error("the second member has taken over")
	}
}

// TestFollowerIsNotifiedOfProgress disables polling at a member that does not apply. Notifications from the applier
// must suffice for it to answer writes and reads.
func TestFollowerIsNotifiedOfProgress(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	never := func(o *Options) { o.pace = pace{time.Hour, time.Hour} }
	a := startMember(t, shared, "a", "east", "", nil)
	if err := a.client.CreateTable(ctx, "t", hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	b := startMember(t, shared, "b", "east", a.path, nil, never)
	for i := range 30 {
		if _, err := b.client.Put(ctx, "t", fmt.Sprint(i), map[string]int{"n": i}, hydraclient.Ack(api.Applied)); err != nil {
			t.Fatal(err)
		}
		if _, err := a.client.Put(ctx, "t", fmt.Sprint("a", i), map[string]int{"n": i}, hydraclient.Ack(api.Applied)); err != nil {
			t.Fatal(err)
		}
		if _, err := b.client.Get(ctx, "t", fmt.Sprint("a", i)); err != nil {
			t.Fatal(err)
		}
	}
	if b.applying.Load() {
		t.Error("the member applies")
	}
}
