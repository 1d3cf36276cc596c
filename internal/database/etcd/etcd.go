// Package etcd is etcd: one member a node, every member with all of the data, agreed on
// by Raft; members join as learners, leave, halt and come back by etcd's own API, and
// the load driver's client speaks it through etcd's own Go client.
//
// # Records
//
// A record is one key, "usertable/user4052466453699787802", whose value holds all fields:
//
//	value = count { len(name) name len(value) value }        lengths and count: uvarint
//
// An update of some fields keeps the others. It reads the record from the member that
// the client is connected to, without asking the others, and writes the merged record
// in a transaction on condition that the record is still the one that was read; if it
// is not, the same transaction answers with the one that is there, and the next try needs
// no read. So an update costs one question that crosses no link between members and
// one consensus, and loses nothing that another client wrote meanwhile.
//
// A key a field would make that one consensus alone, and each read, scan and count ten
// times as many keys: see BenchmarkEncodings for both. Scans and counts are etcd's own,
// over the range of keys.
package etcd

import (
	"context"
	"time"

	"skerry/internal/database"
	"skerry/internal/load"
)

// Name is how experiments call etcd.
const Name = "etcd"

// memory: 105 to 125 MB were measured with 10,000 records of 1 kB, each updated once.
const memory = 128 << 20

// Etcd is etcd as a database.
type Etcd struct{ spread spreader }

// New returns etcd.
func New() *Etcd { return &Etcd{} }

var _ database.Database = (*Etcd)(nil)

// Name implements database.Database.
func (*Etcd) Name() string { return Name }

// Capabilities implements database.Database.
func (*Etcd) Capabilities() database.Capabilities {
	return database.Capabilities{Scan: true, Resize: true, LeaveAbrupt: true, Replication: true, Restart: true, MinNodes: 1, Memory: memory}
}

// Check implements database.Database.
func (*Etcd) Check(_ int, options database.Options) error {
	_, err := parseOptions(options, 0)
	return err
}

// Find implements database.Database.
func (*Etcd) Find(version, from string) (database.Installation, error) {
	return database.Find(Recipes, version, from)
}

// Properties implements database.Configurable.
func (*Etcd) Properties() []string { return Properties() }

// Open implements database.Database.
func (d *Etcd) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, err
	}
	return openClient(ctx, s, &d.spread)
}

// About describes etcd to the laboratory and its documentation.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: Recipes,
	Choices:  choices,
	Protocol: "etcd",
	Row:      database.Row{Replicas: "every member has all data", Smallest: "1 node; 3 survive a loss"},
	Suite:    database.Suite{Takes: 40 * time.Second},
	Smoke: database.Smoke{
		Text: "Does etcd work here? Three nodes 5 ms apart, YCSB's workload A on 1,000 records.",
	},
}

// choices: one log, and reads that ask its leader or do not.
func choices(p database.Placement) []database.Choice {
	near := database.Options{"leader": p.Near}
	return []database.Choice{{
		Name: "leader at the client", Options: near, Reads: database.ReadsLinearizable,
		GivesUp: "a write waits for the nearer half of the members; without a majority nothing is answered",
	}, {
		Name: "local reads", Options: database.Options{"leader": p.Near, "read": "serializable"},
		GivesUp: "a read may return what was, on a member that is cut off for as long as that lasts",
	}}
}
