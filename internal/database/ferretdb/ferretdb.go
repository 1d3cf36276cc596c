// Package ferretdb is FerretDB: MongoDB's protocol in front of SQLite or PostgreSQL, one
// process on one node. It has no replica sets and no shards. It lets a client of MongoDB run
// for real where no mongod is available.
//
//	driver ─► ferretdb 27017 ─► SQLite, files in the node's folder
//	                       └──► PostgreSQL on the same node (backend: postgresql)
//
// FerretDB's own command cannot be built from its module. `skerry install ferretdb` builds the
// small program in helper around its library, with the Go toolchain.
package ferretdb

import (
	_ "embed"
	"errors"
	"strings"

	"skerry/internal/database"
	"skerry/internal/database/mongodb"
	"skerry/internal/install"
)

// Name is the name of FerretDB in experiments.
const Name = "ferretdb"

// memory: 44 MB were measured with SQLite and 200 records of 1 kB; a read loads the whole table.
const memory = 100 << 20

// The helper's source is a separate module, since only it needs its dependencies.
var (
	//go:embed helper/main.go
	source []byte
	//go:embed helper/helper.mod
	module []byte
	//go:embed helper/helper.sum
	sums []byte
)

// Recipe builds FerretDB. helper.sum pins the checksums of its modules.
var Recipe = install.Recipe{
	Name:        Name,
	Summary:     "FerretDB, MongoDB's protocol on SQLite or PostgreSQL (built with the Go toolchain)",
	Wanted:      install.ByConformance,
	Prepare:     install.GoProgram{Name: Name, Main: source, Module: module, Sums: sums}.Build,
	Programs:    []string{Name},
	VersionArgs: []string{"-version"},
	Version: func(output string) string {
		_, version, _ := strings.Cut(strings.TrimSpace(output), "ferretdb v")
		return version
	},
}

// ErrOption marks an option that cannot be used.
var ErrOption = errors.New("invalid option of ferretdb")

const (
	backendSQLite     = "sqlite"
	backendPostgreSQL = "postgresql"
	defaultPort       = 27017
)

type options struct {
	backend string
	port    int
}

func parseOptions(given database.Options) (options, error) {
	r := database.ReadOptions(ErrOption, given, "backend", "port")
	o := options{
		backend: r.Choice("backend", backendSQLite, backendSQLite, backendPostgreSQL),
		port:    r.Int("port", 1, 65535, defaultPort),
	}
	return o, r.Err()
}

// FerretDB is FerretDB as a database. Its clients are MongoDB's.
type FerretDB struct{ mongodb.Pool }

// New returns FerretDB.
func New() *FerretDB { return &FerretDB{} }

var _ database.Database = (*FerretDB)(nil)

func (*FerretDB) Name() string { return Name }

func (*FerretDB) Capabilities() database.Capabilities {
	return database.Capabilities{Scan: true, Restart: true, LazyTables: true, MinNodes: 1, MaxNodes: 1, Memory: memory}
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
		Text: "Does FerretDB work here? One node that carries it, the client 5 ms away, YCSB's workload A " +
			"on 200 records: FerretDB reads a whole table to find a record.",
		Topology: "{sites: [{name: n1}], defaults: {rtt: 5ms}}",
		Workload: "{name: a, records: 200, threads: 4}",
	},
}
