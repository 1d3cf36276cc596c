package cloudsql

import (
	"context"
	"database/sql"
	"log/slog"
	"strings"
	"testing"

	lab "skerry/internal/database"
	"skerry/internal/database/galera"
	mysqlclient "skerry/internal/database/mysql"
	"skerry/internal/database/postgres"
	"skerry/systems/hydra/command"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// TestEveryDatabase runs the same tests on each kind of database that is installed.
func TestEveryDatabase(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		everyTest(t, sqliteURL)
	})
	t.Run("postgres", func(t *testing.T) {
		testkit.Need(t, testkit.Installed(postgres.Recipe))
		url := emptied(postgresURL(t))
		everyTest(t, url)
		t.Run("silence", func(t *testing.T) { testSilence(t, url(t)) })
	})
	t.Run("mariadb", func(t *testing.T) {
		testkit.Need(t, testkit.Installed(galera.Recipe))
		url := emptied(mariadbURL(t))
		everyTest(t, url)
		t.Run("silence", func(t *testing.T) { testSilence(t, url(t)) })
	})
}

func everyTest(t *testing.T, url func(*testing.T) string) {
	t.Run("rows", func(t *testing.T) { testRows(t, url(t)) })
	t.Run("numbers", func(t *testing.T) { testNumbers(t, url(t)) })
	t.Run("snapshot", func(t *testing.T) { testSnapshot(t, url(t)) })
	t.Run("back", func(t *testing.T) { testBack(t, url) })
	t.Run("logs", func(t *testing.T) { testLogs(t, url(t)) })
	t.Run("weight", func(t *testing.T) { testWeight(t, url(t)) })
	t.Run("window", func(t *testing.T) { testWindow(t, url(t)) })
	t.Run("save_beside_writes", func(t *testing.T) { testSaveBesideWrites(t, url(t)) })
	t.Run("exactly_once", func(t *testing.T) { testExactlyOnce(t, url(t)) })
}

// emptied drops the tables of the previous test from a server's database.
func emptied(url string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		_, _, db, _, err := openPools(Config{URL: url, Readers: 1, Timeout: DefaultTimeout}, newSilence(DefaultTimeout))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, table := range []string{"hydra_meta", "hydra_tables", "hydra_outcomes", "accounts", "a", "b", "old", "late"} {
			if _, err := db.ExecContext(t.Context(), "DROP TABLE IF EXISTS "+table); err != nil {
				t.Fatal(err)
			}
		}
		return url
	}
}

// server starts one of the lab's database servers and returns its address.
func server(t *testing.T, d lab.Database, options lab.Options, hosts string) string {
	t.Helper()
	in, err := d.Find("", "")
	if err != nil {
		t.Fatal(err)
	}
	nodes := testhost.Loopback(t, 1)
	c, err := d.Start(t.Context(), lab.Env{Nodes: nodes, Control: nodes[0], Installation: in, Options: options,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return strings.Split(c.Properties()[hosts], ",")[0]
}

func postgresURL(t *testing.T) string {
	return "postgres://postgres@" + server(t, postgres.New(), nil, postgres.PropHosts) + "/postgres?sslmode=disable"
}

func mariadbURL(t *testing.T) string {
	return "mysql://" + mysqlclient.User + "@" + server(t, galera.New(), nil, mysqlclient.PropHosts) + "/" + mysqlclient.Schema
}

// TestDatabaseFull checks that a full database rejects the whole batch and accepts it once there is space.
func TestDatabaseFull(t *testing.T) {
	s := open(t, sqliteURL(t))
	ctx := t.Context()
	if _, err := s.Apply(ctx, "x", 0, []Entry{entry(t, 1, command.Transaction{Writes: []command.Write{write(command.CreateTable,
		"t", "", "")}})}); err != nil {
		t.Fatal(err)
	}
	limit(t, s.write, "PRAGMA max_page_count = 20")
	big := entry(t, 2, command.Transaction{Writes: []command.Write{write(command.Put, "t", "k", `{"a":"`+strings.Repeat("x", 1<<18)+`"}`)}})
	if _, err := s.Apply(ctx, "x", 1, []Entry{big}); err == nil {
		t.Fatal("a full database accepted a batch")
	}
	if p, err := s.Progress(ctx); err != nil || p.Applied != 1 {
		t.Errorf("progress %+v, %v", p, err)
	}
	limit(t, s.write, "PRAGMA max_page_count = 1000000")
	if _, err := s.Apply(ctx, "x", 1, []Entry{big}); err != nil {
		t.Error(err)
	}
	if row, err := s.Get(ctx, "t", "k", 0); err != nil || row.Version != 2 {
		t.Errorf("%d, %v", row.Version, err)
	}
}

// limit runs a pragma on every connection of a pool.
func limit(t *testing.T, db *sql.DB, pragma string) {
	t.Helper()
	var held []*sql.Conn
	for range 3 {
		c, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
		var n int64
		if err := c.QueryRowContext(t.Context(), pragma).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range held {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
