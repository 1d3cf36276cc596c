package hydra

import (
	"errors"
	"testing"
	"time"

	"skerry/internal/base/unit"
	"skerry/internal/database/postgres"
	"skerry/internal/testkit"
	"skerry/internal/testkit/relay"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/command"
	"skerry/systems/hydra/hydraclient"
)

// TestWritesWithoutDatabases has a member start without its cloud's server while no other cloud
// is there: what needs no database is written to the log as long as a majority takes it, to
// tables that there are, and comes into the database when that is back.
func TestWritesWithoutDatabases(t *testing.T) {
	testkit.Need(t, testkit.Installed(postgres.Recipe))
	ctx := t.Context()
	between := relay.New(t, startPostgres(t))
	all := planProcesses(t)
	east, west, witness := all[0], all[1], all[2]
	east.config.Database = "postgres://postgres@" + between.Addr() + "/postgres?sslmode=disable"
	east.config.DatabaseTimeout = unit.Duration(time.Second)
	east.config.Timeout = unit.Duration(1500 * time.Millisecond)
	for _, p := range all {
		p.start()
	}
	eventually(t, "there is a table", func() bool { return east.client.CreateTable(ctx, "t", hydraclient.Ack(api.Everywhere)) == nil })
	eventually(t, "the member keeps it beside its log", func() bool {
		var kept memory
		kept.recall(east.config.Data)
		return len(kept.Tables) > 0 && kept.Tables[len(kept.Tables)-1] == "t"
	})
	west.kill()
	east.kill()
	between.Set(relay.Refuse)
	east.start()
	eventually(t, "those that are left elect a leader", func() bool {
		s, err := witness.client.Status(ctx)
		return err == nil && s.Leader != "" && s.Leader != west.config.Name
	})

	eventually(t, "a write is acknowledged", func() bool {
		_, err := east.client.Put(ctx, "t", "k", map[string]int{"n": 1})
		return err == nil
	})
	if _, err := east.client.Put(ctx, "none", "k", map[string]int{"n": 1}); !errors.Is(err, hydraclient.ErrUnavailable) {
		t.Errorf("a write to a table of which nobody knows: %v", err)
	}
	add := api.Transaction{Writes: []api.Write{{Do: command.Add, Table: "t", Key: "k", Value: []byte(`{"n":1}`)}}}
	if _, err := east.client.Transact(ctx, add); !errors.Is(err, hydraclient.ErrUnavailable) {
		t.Errorf("a write whose outcome depends on a row: %v", err)
	}

	between.Set(relay.Pass)
	eventually(t, "it is in the database", func() bool {
		var meta hydraclient.Meta
		row, err := east.client.Get(ctx, "t", "k", hydraclient.WithMeta(&meta))
		return err == nil && string(row.Value) == `{"n":1}` && meta.Cloud == "east"
	})
}
