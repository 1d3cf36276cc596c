// Package galera is MariaDB with Galera. Every member has all data and accepts writes. The rows of a committing
// transaction go to all members in one total order, and each member certifies them against earlier transactions.
//
// # Formation
//
// Galera's documentation starts one server alone; the others copy its data one after the other. Here the members are
// prepared as a cluster that has lost its power: the same empty data directory, the same position (grastate.dat) and
// the same last view (gvwstate.dat).
//
//	template ──copy──► n1, n2, n3:  grastate.dat  H:0
//	                                gvwstate.dat  n1 n2 n3
//	start all ──► each sees the others of the last view ──► primary component, no copy
//
// This is Galera's own recovery (pc.recovery). It takes 3 s for 3 nodes and for 8.
package galera

import (
	"time"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/install"
)

// Name is the name of the database in experiments.
const Name = "galera"

// memory is what a member takes with default options and a few thousand records.
const memory = 170 << 20

// Galera is MariaDB with Galera as a database.
type Galera struct{ mysql.Driver }

// New returns the database.
func New() *Galera { return &Galera{mysql.Driver{Kind: Name}} }

var _ database.Database = (*Galera)(nil)

func (*Galera) Capabilities() database.Capabilities {
	return database.Capabilities{Scan: true, Resize: true, LeaveAbrupt: true, Replication: true, Restart: true, MinNodes: 1, Memory: memory}
}

func (*Galera) Check(nodes int, options database.Options) error {
	_, err := parseOptions(nodes, options)
	return err
}

func (*Galera) Find(version, from string) (database.Installation, error) {
	return database.Find(Recipes, version, from)
}

// About describes MariaDB with Galera for the lab and the documentation.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: Recipes,
	Choices:  choices,
	Protocol: "mysql",
	Row:      database.Row{Replicas: "every member has all data", Smallest: "1 node; 3 survive a loss"},
	Suite:    database.Suite{Takes: time.Minute},
	Smoke: database.Smoke{
		Text: "Smoke test of MariaDB with Galera. Three nodes 5 ms apart, YCSB's workload A on 1,000 records. All " +
			"workers write to one member: several members would find writes to the same record in conflict.",
		Options: "{member: first}",
	},
}

func choices(database.Placement) []database.Choice {
	return []database.Choice{{
		Name: "near reads", GivesUp: "a read may return a stale value; of two concurrent writes to a record, one fails",
	}, {
		Name: "reads wait", Options: database.Options{"wsrep_sync_wait": 1}, Reads: database.ReadsLinearizable,
		GivesUp: "a read waits for all earlier commits of other members",
	}}
}

var (
	programs = []string{"mariadbd", "mariadb-install-db"}
	optional = []string{"rsync", "mariabackup"}
)

// Recipe installs MariaDB 11.8 with Galera 4 from Debian's sid, with the programs that copy the state of a member.
var Recipe = install.Recipe{
	Name: Name, Series: "11.8", Released: "2025-06", Ended: "2028-06",
	Summary: "MariaDB with Galera (mariadbd, libgalera_smm)",
	Wanted:  install.ByTests,
	Packages: []string{"mariadb-server-core/sid", "mariadb-server/sid", "mariadb-backup/sid", "mariadb-client-core/sid",
		"galera-4/sid", "rsync/sid", "socat/sid"},
	Closure:  true,
	Programs: programs, Optional: optional,
	VersionArgs: []string{"--no-defaults", "--version"}, Version: findVersion,
}

// Recipes are the series of MariaDB, the default first. 10.11 is from Debian 12.
var Recipes = []install.Recipe{Recipe, {
	Name: Name, Series: "10.11", Released: "2023-02", Ended: "2028-02",
	Summary: "MariaDB with Galera (mariadbd, libgalera_smm)",
	Wanted:  install.ByConformance,
	Packages: []string{
		"mariadb-server-core", "mariadb-server", "mariadb-backup", "mariadb-client-core", "galera-4", "rsync", "socat",
		"libaio1", "libbsd0", "libedit2", "libncurses6", "libnuma1", "libpopt0", "libssl3", "liburing2", "libwrap0", "libxxhash0",
	},
	Programs: programs, Optional: optional,
	VersionArgs: []string{"--no-defaults", "--version"}, Version: findVersion,
}}

// findVersion matches "mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for ...".
var findVersion = install.MatchVersion(`Ver ([0-9][0-9.]*)-MariaDB`)

// Upgrades implements database.Upgradable: none between the series that can be installed, by
// https://mariadb.com/docs/server/server-management/install-and-upgrade-mariadb/upgrading.
func (*Galera) Upgrades() database.Upgrades {
	return database.Upgrades{Recipes: Recipes, Rule: "MariaDB supports rolling upgrades of Galera by one long-term series at a time, " +
		"and 11.4, which Debian does not have, is between them"}
}
