// Package ndb is MySQL NDB Cluster: data nodes with rows in memory, SQL nodes (MySQL servers), and a management node.
//
//	node 1            node 2            node 3            node 4
//	mysqld            mysqld            mysqld            mysqld
//	ndbmtd ═ group 0 ═ ndbmtd           ndbmtd ═ group 1 ═ ndbmtd
//	ndb_mgmd
//
// Nodes of a node group hold the same rows. A table is spread over all groups. `skerry install mysql-ndb --build`
// compiles NDB's programs, which no package has, and takes the SQL node from Debian.
package ndb

import (
	"time"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/install"
)

// NDB is MySQL NDB Cluster as a database.
type NDB struct{ mysql.Driver }

// New returns the database.
func New() *NDB {
	return &NDB{mysql.Driver{Kind: Name, Column: column, Engine: " ENGINE=NDBCLUSTER"}}
}

var (
	_ database.Database = (*NDB)(nil)
	_ database.Anchored = (*NDB)(nil)
)

// memory is what a data node with 80 MiB for rows (720 MB) and a SQL node (285 MB) take.
const memory = 1 << 30

func (*NDB) Capabilities() database.Capabilities {
	return database.Capabilities{
		Scan: true, Resize: true, LeaveAbrupt: true, Replication: true, Restart: true,
		MinNodes: 1, MaxNodes: maxNodes, Memory: memory,
	}
}

func (*NDB) Check(nodes int, options database.Options) error {
	_, err := parseOptions(nodes, options)
	return err
}

// Fixed implements database.Anchored: NDB cannot take the rows out of a node group.
func (*NDB) Fixed(nodes []string, _ database.Options) map[string]string {
	fixed := make(map[string]string, len(nodes))
	for _, n := range nodes {
		fixed[n] = inGroup
	}
	return fixed
}

const inGroup = "it is in a node group, which NDB cannot take rows out of"

func (*NDB) Find(version, from string) (database.Installation, error) {
	return database.Find([]install.Recipe{Recipe}, version, from)
}

// Name is the name of the database in experiments.
const Name = "mysql-ndb"

// Recipe takes the SQL node from Debian's sid and compiles the data and management nodes from the same source.
var Recipe = install.Recipe{
	Name:     Name,
	Summary:  "MySQL NDB Cluster (ndb_mgmd, ndbmtd, ndb_mgm, mysqld)",
	Packages: []string{"mysql-server-core/sid", "mysql-client-core/sid"},
	Closure:  true,
	Build: &install.Build{
		Source: "mysql-source/sid", Cost: "3 to 10 minutes of two cores", Disk: 3 << 30,
		Tools:   []string{"cmake", "ninja|make", "g++|clang++", "pkg-config", "strip"},
		Hint:    "install them, with the headers that the build asks for: sudo apt-get install cmake ninja-build g++ pkg-config libssl-dev libncurses-dev libtirpc-dev rpcsvc-proto",
		Compile: compile,
	},
	Programs:    []string{"ndbmtd", "ndb_mgmd", "ndb_mgm", "mysqld"},
	VersionArgs: []string{"--no-defaults", "--version"},
	// "MySQL distrib mysql-8.0.44 ndb-8.0.44, for Linux (x86_64)" and "ndbmtd  Ver 8.0.44-cluster for Linux on x86_64".
	Version: install.MatchVersion(`(?:ndb-|Ver )([0-9]+\.[0-9]+\.[0-9]+)`),
}

// About describes MySQL NDB Cluster for the lab and the documentation.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: []install.Recipe{Recipe},
	Choices: choices,
	Row:     database.Row{Resize: "join, by node groups", Replicas: "`no_of_replicas`", Smallest: "2 nodes"},
	Suite:   database.Suite{Takes: 9 * time.Minute, Waits: true},
	Smoke: database.Smoke{
		Text: "Smoke test of MySQL NDB Cluster. Two node groups of two nodes each, 5 ms apart: every record is on " +
			"two nodes. YCSB's workload A on 1,000 records.",
		Topology: "mesh:4,rtt=5ms",
	},
}

func choices(p database.Placement) []database.Choice {
	if n := len(p.Nodes); n < 2 || n%2 != 0 {
		return nil
	}
	return []database.Choice{{
		Name: "two copies", Reads: database.ReadsLinearizable,
		GivesUp: "a write crosses the link between the nodes of its group three times; an isolated group stops the cluster",
	}}
}
