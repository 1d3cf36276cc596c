// Package ferretdb is FerretDB 2: MongoDB's protocol in front of PostgreSQL on the same node, without replica sets
// and shards. It lets a client of MongoDB run for real where no mongod is available.
//
//	driver ─► ferretdb 27017 ─► PostgreSQL with the extension DocumentDB
//
// `skerry install ferretdb` builds FerretDB with the Go toolchain.
package ferretdb

import (
	"errors"

	"skerry/internal/database"
	"skerry/internal/database/mongodb"
	"skerry/internal/install"
)

// Name is the name of FerretDB in experiments.
const Name = "ferretdb"

// memory is that of FerretDB and its PostgreSQL.
const memory = 300 << 20

// ErrOption marks an option that cannot be used.
var ErrOption = errors.New("invalid option of ferretdb")

const defaultPort = 27017

type options struct{ port int }

func parseOptions(given database.Options) (options, error) {
	r := database.ReadOptions(ErrOption, given, "port")
	return options{port: r.Int("port", 1, 65535, defaultPort)}, r.Err()
}

// FerretDB is FerretDB as a database. Its clients are MongoDB's.
type FerretDB struct{ mongodb.Pool }

// New returns FerretDB.
func New() *FerretDB { return &FerretDB{} }

var _ database.Database = (*FerretDB)(nil)

func (*FerretDB) Name() string { return Name }

func (*FerretDB) Capabilities() database.Capabilities {
	return database.Capabilities{Scan: true, Restart: true, LazyTables: true, NeedsUser: true, MinNodes: 1, MaxNodes: 1, Memory: memory}
}

func (*FerretDB) Check(_ int, given database.Options) error {
	_, err := parseOptions(given)
	return err
}

func (*FerretDB) Find(version, from string) (database.Installation, error) {
	return database.Find([]install.Recipe{Recipe}, version, from)
}

// About describes FerretDB to the laboratory and its documentation.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: []install.Recipe{Recipe},
	Row: database.Row{Note: "(Go toolchain)", Replicas: "no", Smallest: "1 node"},
	Smoke: database.Smoke{
		Text:     "Smoke test of FerretDB. One node, the client 5 ms away, YCSB's workload A on 200 records.",
		Topology: "{sites: [{name: n1}], defaults: {rtt: 5ms}}",
		Workload: "{name: a, records: 200, threads: 4}",
	},
}
