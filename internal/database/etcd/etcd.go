// Package etcd is etcd with one member per node.
//
// # Records
//
// A record is one key, "usertable/user4052466453699787802", whose value holds all fields:
//
//	value = count { len(name) name len(value) value }        lengths and count: uvarint
//
// An update keeps the other fields. It reads the record from the connected member, without consensus, and writes the
// merged record in a transaction that requires the record to be unchanged. Otherwise the transaction returns the
// current record for the next try. So an update costs one local read and one consensus, and no concurrent write is lost.
//
// One key per field would save the read, but multiply the keys of reads, scans and counts by ten: see
// BenchmarkEncodings.
package etcd

import (
	"context"
	"errors"
	"strings"
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

func (*Etcd) Name() string { return Name }

func (*Etcd) Capabilities() database.Capabilities {
	return database.Capabilities{Scan: true, Resize: true, LeaveAbrupt: true, Replication: true, Restart: true,
		LazyTables: true, NeedsUser: true, MinNodes: 1, Memory: memory}
}

func (*Etcd) Check(_ int, options database.Options) error {
	_, err := parseOptions(options, 0)
	return err
}

func (*Etcd) Find(version, from string) (database.Installation, error) {
	return database.Find(Recipes, version, from)
}

func (*Etcd) Properties() []string { return Properties() }

func (d *Etcd) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, err
	}
	return openClient(ctx, s, &d.spread)
}

func (*Etcd) ServerProperties(servers []string, _ string) map[string]string {
	return map[string]string{PropEndpoints: strings.Join(servers, ",")}
}

func (*Etcd) ServerVersion(ctx context.Context, server string, properties map[string]string) (_ string, err error) {
	login, err := database.ReadLogin(properties[database.PropAccess], "", "")
	if err != nil {
		return "", err
	}
	c, err := dialMember(server, nil, login)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, closeClient(c)) }()
	s, err := c.Status(ctx, server)
	if err != nil {
		return "", err
	}
	return s.Version, nil
}

// About describes etcd to the laboratory and its documentation.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: Recipes,
	Choices:  choices,
	Protocol: "etcd",
	Row:      database.Row{Replicas: "every member has all data", Smallest: "1 node; 3 survive a loss"},
	Suite:    database.Suite{Takes: 40 * time.Second},
	Smoke: database.Smoke{
		Text: "Smoke test of etcd. Three nodes 5 ms apart, YCSB's workload A on 1,000 records.",
	},
}

func choices(p database.Placement) []database.Choice {
	near := database.Options{"leader": p.Near}
	return []database.Choice{{
		Name: "leader at the client", Options: near, Reads: database.ReadsLinearizable,
		GivesUp: "a write waits for the nearest majority of the members; without a majority, all requests fail",
	}, {
		Name: "local reads", Options: database.Options{"leader": p.Near, "read": "serializable"},
		GivesUp: "a read may return a stale value, on an isolated member for as long as the cut lasts",
	}}
}
