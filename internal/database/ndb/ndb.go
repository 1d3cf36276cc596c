// Package ndb is MySQL NDB Cluster: data nodes that hold rows in memory, each row on as many
// of them as there are replicas; SQL nodes, MySQL servers in front of them; and a management
// node that has the configuration.
//
//	node 1            node 2            node 3            node 4
//	mysqld            mysqld            mysqld            mysqld
//	ndbmtd ═ group 0 ═ ndbmtd           ndbmtd ═ group 1 ═ ndbmtd
//	ndb_mgmd
//
// Nodes of a node group hold the same rows. A table is spread over all groups.
//
// No package has NDB's own programs: `skerry install mysql-ndb --build` compiles them, and
// takes the SQL node from Debian, or they come from PATH or --from.
package ndb

import (
	"context"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/load"
)

// NDB is MySQL NDB Cluster as a database.
type NDB struct{ driver mysql.Driver }

// New returns it.
func New() *NDB {
	return &NDB{driver: mysql.Driver{Kind: Name, Column: column, Engine: " ENGINE=NDBCLUSTER"}}
}

var (
	_ database.Database = (*NDB)(nil)
	_ database.Anchored = (*NDB)(nil)
)

// Name implements database.Database.
func (*NDB) Name() string { return Name }

// memory is what a data node with 80 MiB for rows (720 MB) and a SQL node (285 MB) take.
const memory = 1 << 30

// Capabilities implements database.Database.
func (*NDB) Capabilities() database.Capabilities {
	return database.Capabilities{Scan: true, Resize: true, LeaveAbrupt: true, Replication: true, Restart: true, MinNodes: 1, MaxNodes: maxNodes, Memory: memory}
}

// Check implements database.Database.
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

// inGroup is why a node cannot leave.
const inGroup = "it is in a node group, which NDB cannot take rows out of"

// Find implements database.Database.
func (*NDB) Find(from string) (database.Installation, error) { return database.Find(Recipe, from) }

// Properties implements database.Configurable.
func (*NDB) Properties() []string { return mysql.Properties() }

// Open implements database.Database.
func (n *NDB) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	c, err := n.driver.Open(ctx, properties)
	if err != nil {
		return nil, err
	}
	return c, nil
}
