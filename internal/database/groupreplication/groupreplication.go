// Package groupreplication is MySQL with Group Replication: a server a node, every one with
// all the data. A transaction that commits is agreed on by a majority (Paxos) in one order
// and certified by each member against those before it. By default one member, the
// primary, takes all writes, and the others elect another one when it is lost.
//
// # Formation
//
//	template ──copy──► n1, n2, n3    the same empty data, identities of their own
//	n1: bootstrap ──► a group of one
//	n2, n3: START GROUP_REPLICATION, one after the other ──► RECOVERING ──► ONLINE
//
// Servers start in parallel; XCom takes one new member at a time.
package groupreplication

import (
	"context"
	"errors"
	"fmt"
	"net"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/load"
)

// memory is what a member takes with default options and a few thousand records.
const memory = 480 << 20

// GroupReplication is MySQL with Group Replication as a database.
type GroupReplication struct{ driver mysql.Driver }

// New returns it.
func New() *GroupReplication {
	return &GroupReplication{driver: mysql.Driver{Kind: Name, Discover: discover}}
}

var _ database.Database = (*GroupReplication)(nil)

// Name implements database.Database.
func (*GroupReplication) Name() string { return Name }

// Capabilities implements database.Database.
func (*GroupReplication) Capabilities() database.Capabilities {
	return database.Capabilities{Scan: true, Resize: true, LeaveAbrupt: true, Replication: true, Restart: true, MinNodes: 1, MaxNodes: maxMembers, Memory: memory}
}

// Check implements database.Database.
func (*GroupReplication) Check(nodes int, options database.Options) error {
	_, err := parseOptions(nodes, options)
	return err
}

// Find implements database.Database.
func (*GroupReplication) Find(from string) (database.Installation, error) {
	return database.Find(Recipe, from)
}

// Properties implements database.Configurable.
func (*GroupReplication) Properties() []string { return mysql.Properties() }

// Open implements database.Database.
func (g *GroupReplication) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	c, err := g.driver.Open(ctx, properties)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// errNoPrimary says that nobody takes writes at the moment.
var errNoPrimary = errors.New("the group has no primary that is ONLINE")

// discover finds the members, and the primary where there is one for all.
func discover(ask func(string) ([][]string, error)) ([]string, string, error) {
	rows, err := ask(membersQuery)
	if err != nil {
		return nil, "", fmt.Errorf("asking for the members of the group: %w", err)
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
	if len(primaries) > 1 { // every member takes writes
		return members, mysql.AnyMember, nil
	}
	return members, primaries[0], nil
}
