package hydra

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"skerry/internal/base/unit"
	"skerry/internal/database"
	"skerry/internal/database/postgres"
	"skerry/internal/testkit"
	"skerry/internal/testkit/loophost"
	"skerry/internal/testkit/relay"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/hydraclient"
)

// startPostgres starts a server of the laboratory's and returns its address.
func startPostgres(t *testing.T) string {
	t.Helper()
	d := postgres.New()
	in, err := d.Find("")
	if err != nil {
		t.Fatal(err)
	}
	nodes := loophost.New(t, 1)
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

// TestDatabaseAway has a member start without its cloud's server, and lose it to a link that
// drops everything: the log goes on, the other cloud answers, status tells, and with the server
// the entries come into it.
func TestDatabaseAway(t *testing.T) {
	testkit.Need(t, testkit.Installed(postgres.Recipe))
	ctx := t.Context()
	between := relay.New(t, startPostgres(t))
	between.Set(relay.Refuse)
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
	// answered reads a row at the member in the east.
	answered := func(want, by string) {
		t.Helper()
		var meta hydraclient.Meta
		eventually(t, "a row is "+want+" by "+by, func() bool {
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

	eventually(t, "there is a table", func() bool { return west.client.CreateTable(ctx, "t", hydraclient.Ack(api.Applied)) == nil })
	if d := opened(); d.State != api.StateDown || d.Problem == "" {
		t.Errorf("status of a database that is away: %+v", d)
	}
	put(1)
	answered(`{"n":1}`, "west")
	west.kill()
	eventually(t, "those that are left elect a leader", func() bool {
		s, err := witness.client.Status(ctx)
		return err == nil && s.Leader != "" && s.Leader != west.config.Name
	})
	eventually(t, "a read that nobody can answer is refused", func() bool {
		_, err := east.client.Get(ctx, "t", "k", hydraclient.Read(api.Local))
		return errors.Is(err, hydraclient.ErrUnavailable)
	})

	between.Set(relay.Pass)
	answered(`{"n":1}`, "east")
	west.start()
	put(2)
	answered(`{"n":2}`, "east")

	between.Set(relay.Swallow)
	eventually(t, "the other cloud answers", func() bool {
		var meta hydraclient.Meta
		_, err := east.client.Get(ctx, "t", "k", hydraclient.Read(api.Local), hydraclient.WithMeta(&meta))
		return err == nil && meta.Cloud == "west"
	})
	eventually(t, "status tells of the silence", func() bool {
		d := opened()
		return d.State == api.StateDown && strings.Contains(d.Problem, "does not answer")
	})
	put(3)
	answered(`{"n":3}`, "west")
	between.Set(relay.Pass)
	answered(`{"n":3}`, "east")
}
