// Package postgres is PostgreSQL with streaming replication: a primary, and a hot standby on each other node.
//
//	primary ──WAL──► standby   through a replication slot for each
//	   │                       cloned by pg_basebackup
//	   └──WAL──► standby ──► promoted when the primary halts, leaves or is lost
//
// PostgreSQL never promotes a standby on its own. The lab does, as an operator or a failover manager would: it promotes the
// standby with the most WAL, and the others follow it. A returning primary is rewound (pg_rewind) to a standby.
//
// The table is that of YCSB's JDBC binding, except that fields are bytea, because values are bytes.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"skerry/internal/base/linger"
	"skerry/internal/database"
	"skerry/internal/install"
	"skerry/internal/load"
)

// Name is the database's name in experiments.
const Name = "postgres"

// memory: a primary with ten clients and 10,000 records of 1 kB; a standby takes half of it.
const memory = 88 << 20

// Postgres is PostgreSQL as a database. Its value holds what clients share.
type Postgres struct {
	// directories are the members as clients know them.
	directories database.ClientPool[settings, *directory]
}

// New returns PostgreSQL.
func New() *Postgres { return &Postgres{} }

var _ database.Database = (*Postgres)(nil)

func (*Postgres) Name() string { return Name }

func (*Postgres) Capabilities() database.Capabilities {
	return database.Capabilities{
		Scan: true, Resize: true, LeaveAbrupt: true, Replication: true, Restart: true,
		MinNodes: 1, MaxNodes: maxNodes, Memory: memory,
	}
}

func (*Postgres) Check(_ int, options database.Options) error {
	_, err := parseOptions(options)
	return err
}

func (*Postgres) Find(version, from string) (database.Installation, error) {
	return database.Find(Recipes, version, from)
}

func (*Postgres) Properties() []string { return Properties() }

func (d *Postgres) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, err
	}
	return d.openClient(ctx, s)
}

func (*Postgres) ServerProperties(servers []string, _ string) map[string]string {
	return map[string]string{PropHosts: strings.Join(servers, ",")}
}

// ServerVersion implements database.External. Products with PostgreSQL's protocol name themselves in version().
func (*Postgres) ServerVersion(ctx context.Context, server string, properties map[string]string) (_ string, err error) {
	s, err := parseSettings(properties)
	if err != nil {
		return "", err
	}
	conn, err := connect(ctx, server, s, nil)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	text, err := oneRow(ctx, conn, "SELECT version()")
	return shortVersion(text), err
}

// shortVersion shortens "PostgreSQL 15.18 (Debian ...) on x86_64..." to "15.18", and "CockroachDB CCL v23.2.0 (x86_64...)"
// to "CockroachDB CCL v23.2.0".
func shortVersion(text string) string {
	text, _, _ = strings.Cut(text, " (")
	text, _, _ = strings.Cut(text, " on ")
	return strings.TrimPrefix(text, "PostgreSQL ")
}

// About describes PostgreSQL for the lab and the documentation.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: Recipes,
	Choices:  choices,
	Protocol: "postgres",
	Row:      database.Row{Replicas: "every member has all data", Smallest: "1 node; 2 survive a loss"},
	Smoke: database.Smoke{
		Text: "Smoke test of PostgreSQL. Three nodes 5 ms apart, YCSB's workload A on 1,000 records.",
	},
}

func choices(p database.Placement) []database.Choice {
	if len(p.Nodes) < 2 {
		return []database.Choice{{Name: "alone", Reads: database.ReadsLinearizable, GivesUp: "there is no second copy"}}
	}
	out := []database.Choice{{
		Name: "asynchronous", Options: database.Options{"primary": p.Near}, Reads: database.ReadsLinearizable,
		Loses:   "writes that no standby had when the primary was lost",
		GivesUp: "all requests go to the primary's site; while it is isolated, all fail until a standby is promoted",
	}, {
		Name: "one replica confirms", Options: database.Options{"primary": p.Near, "synchronous_standby_names": "ANY 1 (*)"},
		Reads:   database.ReadsLinearizable,
		GivesUp: "a write waits for the nearest standby; all requests go to the primary's site",
	}, {
		Name:    "one replica confirms, near reads",
		Options: database.Options{"primary": p.Near, "synchronous_standby_names": "ANY 1 (*)", "read": "nearest"},
		GivesUp: "a read may return a stale value",
	}}
	return out
}

// seekPause limits searches for a primary: each connection is a process of a server.
const seekPause = 100 * time.Millisecond

// errNoPrimary means that no reachable server accepts writes.
var errNoPrimary = errors.New("none of the servers takes writes")

type candidate struct {
	conn    *pgconn.PgConn
	addr    string
	standby bool
	err     error
}

// findLane connects to all servers and keeps the wanted connection: to the primary, or the first to answer.
func (c *client) findLane(ctx context.Context, want string) (*lane, error) {
	if err := linger.For(ctx, time.Until(c.sought.Add(seekPause))); err != nil {
		return nil, load.Failed(classNoPrimary, "", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found := make(chan candidate)
	addrs := c.members()
	var asking sync.WaitGroup
	for _, addr := range addrs {
		asking.Go(func() { found <- queryDirectory(ctx, addr, c.settings) })
	}
	var chosen, second candidate
	var failed error
	for range addrs {
		got := <-found
		switch {
		case got.err != nil:
			if failed == nil || ctx.Err() == nil {
				failed = got.err
			}
			continue
		case chosen.conn == nil && (want == readNearest || got.standby == (want == readStandby)):
			chosen = got
			if want != readStandby {
				cancel() // the others need not answer
			}
		case want == readStandby && second.conn == nil:
			second = got // without a standby the primary will do
		default:
			abandon(got.conn)
		}
	}
	asking.Wait()
	if chosen.conn == nil {
		chosen, second = second, candidate{}
	}
	abandon(second.conn)
	if chosen.conn == nil {
		c.sought = time.Now()
		return nil, noPrimary(failed)
	}
	return &lane{conn: chosen.conn, addr: chosen.addr, statements: make(map[string]*statement)}, nil
}

func noPrimary(failed error) error {
	if failed == nil {
		return load.Failed(classNoPrimary, "", errNoPrimary)
	}
	return load.Failed(classNoPrimary, "", fmt.Errorf("%w; one says: %w", errNoPrimary, failed))
}

func queryDirectory(ctx context.Context, addr string, s settings) candidate {
	conn, err := connect(ctx, addr, s, nil)
	if err != nil {
		return candidate{err: dialError(addr, err)}
	}
	standby, err := oneRow(ctx, conn, inRecovery)
	if err != nil {
		abandon(conn)
		return candidate{err: dialError(addr, err)}
	}
	return candidate{conn: conn, addr: addr, standby: standby == isTrue}
}

const farewell = time.Second

// abandon closes a connection that is not needed. It may be nil.
func abandon(conn *pgconn.PgConn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	_ = conn.Close(ctx) // nothing was outstanding on it
}

var programs = []string{"postgres", "initdb", "pg_basebackup", "pg_rewind"}

// Recipe installs PostgreSQL 18 from Debian's sid.
var Recipe = install.Recipe{
	Name: Name, Series: "18", Released: "2025-09", Ended: "2030-11",
	Summary:  "PostgreSQL, primary and streaming standbys",
	Wanted:   install.ByConformance,
	Packages: []string{"postgresql-18/sid", "postgresql-client-18/sid"}, Closure: true,
	Programs: programs, Dirs: []string{"usr/lib/postgresql/*/bin"},
	VersionArgs: []string{"--version"}, Version: findVersion,
}

// Recipes are the series of PostgreSQL, the default first. The libraries are missing in a minimal Debian.
var Recipes = []install.Recipe{Recipe, {
	Name: Name, Series: "15", Released: "2022-10", Ended: "2027-11",
	Summary: "PostgreSQL, primary and streaming standbys",
	Wanted:  install.ByConformance,
	Packages: []string{"postgresql-15", "postgresql-client-15", "libpq5", "libicu72", "libxml2", "libxslt1.1",
		"libldap-2.5-0", "libsasl2-2", "liblz4-1", "libzstd1", "libssl3", "libbsd0", "libedit2",
		"libgssapi-krb5-2", "libkrb5-3", "libk5crypto3", "libkrb5support0", "libkeyutils1"},
	Programs: programs, Dirs: []string{"usr/lib/postgresql/*/bin"},
	VersionArgs: []string{"--version"}, Version: findVersion,
}}

// findVersion matches "postgres (PostgreSQL) 15.18 (Debian ...)".
var findVersion = install.MatchVersion(`\(PostgreSQL\) ([0-9][^\s]*)`)

// Upgrades implements database.Upgradable: there is no rolling upgrade, by
// https://www.postgresql.org/docs/current/upgrading.html.
func (*Postgres) Upgrades() database.Upgrades {
	return database.Upgrades{Recipes: Recipes, Rule: "a server does not start on the directory of another major version, and streaming " +
		"replication needs the same one; PostgreSQL provides pg_upgrade, which stops the cluster, and logical replication to a second cluster"}
}
