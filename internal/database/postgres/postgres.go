// Package postgres is PostgreSQL with streaming replication: a primary on the first
// node, or another one, and a hot standby on each other, every one with all of the data.
//
//	primary ──WAL──► standby   through a replication slot for each
//	   │                       cloned by pg_basebackup
//	   └──WAL──► standby ──► promoted when the primary halts, leaves or is lost
//
// PostgreSQL itself never promotes: the laboratory does what an operator or a failover
// manager would. It asks the standbys that are left how much WAL they have, promotes the
// one with the most, and has the others follow it; a primary that comes back is rewound
// (pg_rewind) and becomes a standby.
//
// The table is that of YCSB's JDBC binding, usertable with ycsb_key and field0 to field9,
// but for the fields' type, which is bytea: values are bytes, not all of them text.
package postgres

import (
	"context"
	"regexp"
	"sync"

	"skerry/internal/database"
	"skerry/internal/install"
	"skerry/internal/load"
)

// Name is how experiments call PostgreSQL.
const Name = "postgres"

// memory is what a primary takes with default options, ten clients and 10,000 records of
// 1 kB; its shared buffers are 32 MB. A standby takes half of it.
const memory = 88 << 20

// Recipe installs Debian's PostgreSQL, with those libraries that not every Debian system
// has.
var Recipe = install.Recipe{
	Name:    Name,
	Summary: "PostgreSQL, primary and streaming standbys",
	Wanted:  install.ByConformance,
	Packages: []string{"postgresql-15", "postgresql-client-15", "libpq5", "libicu72", "libxml2", "libxslt1.1",
		"libldap-2.5-0", "libsasl2-2", "liblz4-1", "libzstd1", "libssl3", "libbsd0", "libedit2",
		"libgssapi-krb5-2", "libkrb5-3", "libk5crypto3", "libkrb5support0", "libkeyutils1"},
	Programs:    []string{"postgres", "initdb", "pg_basebackup", "pg_rewind"},
	Dirs:        []string{"usr/lib/postgresql/*/bin"},
	VersionArgs: []string{"--version"},
	Version: func(output string) string {
		if m := versionPattern.FindStringSubmatch(output); m != nil {
			return m[1]
		}
		return ""
	},
}

// versionPattern finds the version in "postgres (PostgreSQL) 15.18 (Debian ...)".
var versionPattern = regexp.MustCompile(`\(PostgreSQL\) ([0-9][^\s]*)`)

// Postgres is PostgreSQL as a database. Its value holds what clients share.
type Postgres struct {
	mu      sync.Mutex
	schemas map[string]bool // tables that were made sure of: settings and columns
	// directories are the members as clients know them.
	directories database.ClientPool[settings, *directory]
}

// New returns PostgreSQL.
func New() *Postgres {
	return &Postgres{schemas: make(map[string]bool)}
}

var _ database.Database = (*Postgres)(nil)

// Name implements database.Database.
func (*Postgres) Name() string { return Name }

// Capabilities implements database.Database.
func (*Postgres) Capabilities() database.Capabilities {
	return database.Capabilities{Scan: true, Resize: true, LeaveAbrupt: true, Replication: true, Restart: true, MinNodes: 1, MaxNodes: maxNodes, Memory: memory}
}

// Check implements database.Database.
func (*Postgres) Check(_ int, options database.Options) error {
	_, err := parseOptions(options)
	return err
}

// Find implements database.Database.
func (*Postgres) Find(from string) (database.Installation, error) { return database.Find(Recipe, from) }

// Properties implements database.Configurable.
func (*Postgres) Properties() []string { return Properties() }

// Open implements database.Database.
func (d *Postgres) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, err
	}
	return d.openClient(ctx, s)
}
