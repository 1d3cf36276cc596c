// Package hydra is the adapter of Hydra. Members are processes of the program hydra (`hydra node`).
//
// A site is a cloud; with option clouds each node is one. The members of a cloud share a SQLite file, PostgreSQL or
// MariaDB on the node of the first one, which outlives them as a managed database would. One node may be a witness.
//
// # Records
//
// A record is a row whose value has a member for each field. Values are bytes, but JSON strings are text: a value that
// is no UTF-8, or begins like an encoded one, is written as "base64:" and its encoding. An update is one merge request.
package hydra

import (
	"context"
	"fmt"
	"sync"

	"skerry/internal/database"
	"skerry/internal/install"
	"skerry/internal/load"
)

// Name is how experiments call Hydra.
const Name = "hydra"

const program = "hydra"

// memory: a member took 40 MB with 10,000 records of 1 kB, and as much again under load.
const memory = 96 << 20

// Hydra is Hydra as a database.
type Hydra struct {
	mu    sync.Mutex
	order map[string][]string // endpoints as they were found to be near
	turn  int

	clients clientPool
}

// New returns Hydra.
func New() *Hydra { return &Hydra{order: make(map[string][]string)} }

var _ database.Database = (*Hydra)(nil)

// Name implements database.Database.
func (*Hydra) Name() string { return Name }

// Capabilities implements database.Database.
func (*Hydra) Capabilities() database.Capabilities {
	return database.Capabilities{Scan: true, Resize: true, LeaveAbrupt: true, Replication: true, Restart: true, MinNodes: 1, Memory: memory}
}

// Check implements database.Database.
func (*Hydra) Check(nodes int, o database.Options) error {
	parsed, err := parseOptions(o)
	if err == nil && parsed.direct && nodes > 1 {
		return fmt.Errorf("%w: direct is one SQL database by itself: it has one node, not %d", ErrOption, nodes)
	}
	return err
}

// Find implements database.Database: the program hydra, or the one at from.
func (*Hydra) Find(_, from string) (database.Installation, error) {
	in, err := install.Hydra.Install(Name, from)
	if err != nil {
		return database.Installation{}, fmt.Errorf("finding hydra: %w", err)
	}
	return database.Installation{Database: Name, Version: in.Version, Programs: in.Programs}, nil
}

// Properties implements database.Configurable.
func (*Hydra) Properties() []string { return Properties() }

// Open implements database.Database.
func (d *Hydra) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, err
	}
	if s.walletDNS != "" {
		return openApplication(s), nil
	}
	s.endpoints = d.orderEndpoints(ctx, s)
	return openClient(ctx, s, &d.clients)
}

// About describes Hydra to the laboratory and its documentation.
var About = database.About{
	Name: Name, New: func() database.Database { return New() },
	Choices: choices,
	Row:     database.Row{Replicas: "every cloud has all data", Smallest: "1 node; 3 survive a loss"},
	Smoke: database.Smoke{
		Text: "Does the laboratory work here? Three nodes 5 ms apart with Hydra, which is part of skerry so that " +
			"nothing has to be installed, and YCSB's workload A on 1,000 records.",
	},
}

func choices(p database.Placement) []database.Choice {
	return []database.Choice{{
		Name: "linearizable", Options: database.Options{"prefer_cloud": p.Site}, Reads: database.ReadsLinearizable,
		GivesUp: "a read asks the leader for the newest place in the log",
	}, {
		Name: "local reads", Options: database.Options{"prefer_cloud": p.Site, "reads": "local"}, GivesUp: "a read may return what was",
	}, {
		Name: "bounded reads", Options: database.Options{"prefer_cloud": p.Site, "reads": "bounded", "staleness": "1s"}, GivesUp: "a read may return what was a second ago",
	}}
}
