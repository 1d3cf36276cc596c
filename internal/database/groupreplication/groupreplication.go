// Package groupreplication is MySQL with Group Replication. Every member has all data. A majority (Paxos) orders the
// committing transactions, and each member certifies them. By default the elected primary accepts all writes.
//
// # Formation
//
//	template ──copy──► n1, n2, n3    the same empty data, own identities
//	n1: bootstrap ──► a group of one
//	n2, n3: START GROUP_REPLICATION, one after the other ──► RECOVERING ──► ONLINE
//
// Servers start in parallel; XCom takes one new member at a time.
package groupreplication

import (
	"errors"
	"fmt"
	"net"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/install"
)

// memory is the memory use of a member, in bytes, with default options and a few thousand records.
const memory = 480 << 20

// GroupReplication is MySQL with Group Replication as a database.
type GroupReplication struct{ mysql.Driver }

// New returns the database.
func New() *GroupReplication {
	return &GroupReplication{mysql.Driver{Kind: Name, Discover: discover}}
}

var _ database.Database = (*GroupReplication)(nil)

func (*GroupReplication) Capabilities() database.Capabilities {
	return database.Capabilities{
		Scan: true, Resize: true, LeaveAbrupt: true, Replication: true, Restart: true,
		MinNodes: 1, MaxNodes: maxMembers, Memory: memory,
	}
}

func (*GroupReplication) Check(nodes int, options database.Options) error {
	_, err := parseOptions(nodes, options)
	return err
}

func (*GroupReplication) Find(version, from string) (database.Installation, error) {
	return database.Find([]install.Recipe{Recipe}, version, from)
}

var errNoPrimary = errors.New("the group has no primary that is ONLINE")

func discover(ask func(string) ([][]string, error)) ([]string, string, error) {
	rows, err := ask(membersQuery)
	if err != nil {
		return nil, "", fmt.Errorf("querying the members of the group: %w", err)
	}
	var members, primaries []string
	for _, m := range parseMembers(rows) {
		if m.state != online {
			continue
		}
		addr := net.JoinHostPort(m.host, m.port)
		members = append(members, addr)
		if m.role == "PRIMARY" {
			primaries = append(primaries, addr)
		}
	}
	if len(primaries) == 0 {
		return nil, "", errNoPrimary
	}
	if len(primaries) > 1 { // every member accepts writes
		return members, mysql.AnyMember, nil
	}
	return members, primaries[0], nil
}

// Name is the name of the database in experiments.
const Name = "mysql-group-replication"

// Recipe installs MySQL and its C library from Debian's sid; no stable release of Debian has it.
var Recipe = install.Recipe{
	Name:        Name,
	Summary:     "MySQL with Group Replication (mysqld, group_replication.so)",
	Wanted:      install.ByConformance,
	Packages:    []string{"mysql-server-core/sid", "mysql-client-core/sid"},
	Closure:     true,
	Programs:    []string{"mysqld"},
	VersionArgs: []string{"--no-defaults", "--version"},
	// "mysqld  Ver 9.7.4-2 for Linux on x86_64 (Debian)", but not MariaDB's mysqld.
	Version: install.MatchVersion(`Ver ([0-9]+\.[0-9]+\.[0-9]+)(?:-[0-9A-Za-z.~+]+)? for`),
}

// About describes MySQL Group Replication for the lab and the documentation.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: []install.Recipe{Recipe},
	Choices: choices,
	Row:     database.Row{Replicas: "every member has all data", Smallest: "1 node; 3 survive a loss"},
	Suite:   database.Suite{Takes: 96 * time.Second},
	Smoke: database.Smoke{
		Text: "Smoke test of MySQL Group Replication. Three nodes 5 ms apart, YCSB's workload A on 1,000 records.",
	},
}

func choices(p database.Placement) []database.Choice {
	return []database.Choice{{
		Name: "reads of the primary", Options: database.Options{"primary": p.Near}, Reads: database.ReadsMonotonic,
		GivesUp: "all requests go to the primary's site; an isolated primary returns stale values until it detects the cut",
	}, {
		Name: "consistency before", Options: database.Options{"primary": p.Near, "group_replication_consistency": "BEFORE"},
		Reads:   database.ReadsLinearizable,
		GivesUp: "every read waits for the order of the group",
	}, {
		Name: "near reads", Options: database.Options{"primary": p.Near, "reads": "member"}, GivesUp: "a read may return a stale value",
	}}
}
