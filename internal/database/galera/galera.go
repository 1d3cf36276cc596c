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
)

// Name is how experiments call it.
const Name = "galera"

// memory is what a member takes with default options and a few thousand records.
const memory = 170 << 20

// Galera is MariaDB with Galera as a database.
type Galera struct{ mysql.Driver }

// New returns it.
func New() *Galera { return &Galera{mysql.Driver{Kind: Name}} }

var _ database.Database = (*Galera)(nil)

// Capabilities implements database.Database.
func (*Galera) Capabilities() database.Capabilities {
	return database.Capabilities{Scan: true, Resize: true, LeaveAbrupt: true, Replication: true, Restart: true, MinNodes: 1, Memory: memory}
}

// Check implements database.Database.
func (*Galera) Check(nodes int, options database.Options) error {
	_, err := parseOptions(nodes, options)
	return err
}

// Find implements database.Database.
func (*Galera) Find(version, from string) (database.Installation, error) {
	return database.Find(Recipes, version, from)
}

// About is what the laboratory and its documentation know of MariaDB with Galera.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: Recipes,
	Choices:  choices,
	Protocol: "mysql",
	Row:      database.Row{Replicas: "every member has all data", Smallest: "1 node; 3 survive a loss"},
	Suite:    database.Suite{Takes: time.Minute},
	Smoke: database.Smoke{
		Text: "Does MariaDB with Galera work here? Three nodes 5 ms apart, YCSB's workload A on 1,000 records. All " +
			"workers write to one member: several members would find writes to the same record in conflict.",
		Options: "{member: first}",
	},
}

func choices(database.Placement) []database.Choice {
	return []database.Choice{{
		Name: "near reads", GivesUp: "a read may return what was; two writes to a record at the same time end one of them",
	}, {
		Name: "reads wait", Options: database.Options{"wsrep_sync_wait": 1}, Reads: database.ReadsLinearizable,
		GivesUp: "a read waits for what was committed anywhere before it",
	}}
}
