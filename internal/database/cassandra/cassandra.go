// Package cassandra is Apache Cassandra with one server per node.
//
// # Starting
//
// Cassandra's documentation starts one node after the other, each waiting for the ring to settle. A new cluster
// has no data to lose, so its members get evenly spread tokens and do not bootstrap:
//
//	start    several at the same time, as each other's seeds
//	ready    every member is NORMAL, sees all others alive, and agrees on the ring and the schema
//	seeds    the final seeds are set on all members
//	schema   keyspace and table
//
// Members that join later bootstrap one at a time: two at once lose rows.
//
// # Querying members
//
// Cassandra reports most of its state only through Java Management Extensions. Its nodetool takes 2 s of CPU per
// query. Each server therefore carries Jolokia's agent, which answers over HTTP in a millisecond, on the member's node.
package cassandra

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/install"
	"skerry/internal/machine/files"
)

// Name is how experiments call Cassandra.
const Name = "cassandra"

// Sentinel errors.
var (
	// ErrOption marks an option that cannot be used.
	ErrOption = errors.New("invalid option of cassandra")
	// ErrProperty marks a client property that cannot be used.
	ErrProperty = errors.New("bad property")
	// ErrSchema means that a cluster lacks the table or columns that a workload needs.
	ErrSchema = errors.New("the table is not there")
)

// Cassandra is Apache Cassandra as a database. Clients with equal settings share a store.
type Cassandra struct {
	stores database.ClientPool[settings, *store]
}

// New returns Cassandra.
func New() *Cassandra { return &Cassandra{} }

var (
	_ database.Database  = (*Cassandra)(nil)
	_ database.Anchored  = (*Cassandra)(nil)
	_ database.Published = (*Cassandra)(nil)
)

func (*Cassandra) Name() string { return Name }

// memberMemory: a member with 256 MiB of heap used up to 710 MB after a load.
const memberMemory = 750 << 20

func (*Cassandra) Capabilities() database.Capabilities {
	return database.Capabilities{Scan: true, Resize: true, LeaveAbrupt: true, Replication: true, Restart: true, NeedsUser: true,
		MinNodes: 1, Memory: memberMemory}
}

func (*Cassandra) Check(nodes int, given database.Options) error {
	_, err := parseOptions(nodes, given)
	return err
}

func (*Cassandra) Ports(nodes int, given database.Options) (database.Ports, error) {
	o, err := parseOptions(nodes, given)
	return database.Ports{All: []int{o.nativePort, o.storagePort}, Fixed: true}, err
}

func (*Cassandra) Fixed(nodes []string, given database.Options) map[string]string {
	o, err := parseOptions(len(nodes), given)
	if err != nil {
		return nil // told by Check
	}
	fixed := make(map[string]string)
	if o.strategy == strategySimple && o.replication >= len(nodes) {
		for _, n := range nodes {
			fixed[n] = "there are as many replicas as nodes"
		}
	}
	if o.seeds == 1 && len(nodes) > 0 {
		fixed[nodes[0]] = "it is the only seed"
	}
	return fixed
}

func (*Cassandra) Find(version, from string) (database.Installation, error) {
	return database.Find(Recipes(), version, from)
}

// About describes Cassandra to the laboratory and its documentation.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: Recipes(),
	Choices:  choices,
	Protocol: "cql",
	Row:      database.Row{Scan: "yes, in the order of hashes", Replicas: "yes", Smallest: "1 node"},
	Suite:    database.Suite{Takes: 150 * time.Second, Alone: true},
	Smoke: database.Smoke{
		Text: "Smoke test of Cassandra. Three nodes 5 ms apart, YCSB's workload A on 1,000 records, each on two of " +
			"the nodes.",
		Options: "{replication_factor: 2}",
	},
}

func choices(p database.Placement) []database.Choice {
	copies := p.Copies()
	out := []database.Choice{{
		Name: "quorum", Options: database.Options{"replication_factor": copies}, Reads: database.ReadsMonotonic,
		GivesUp: "a request waits for the second nearest copy; of two concurrent writes, the later timestamp wins",
	}, {
		Name: "one", Options: database.Options{"replication_factor": copies, "read_consistency": "one", "write_consistency": "one"},
		GivesUp: "a read may return a stale value; a write is acknowledged when a single copy has it",
	}}
	if copies >= 3 {
		out = append(out, database.Choice{
			Name: "writes to all", Options: database.Options{"replication_factor": copies, "read_consistency": "one", "write_consistency": "all"}, Reads: database.ReadsMonotonic,
			GivesUp: "a write fails while any copy of its record is unavailable",
		})
	}
	return out
}

//go:embed jars-5.0.lock
var jars50 string

//go:embed jars-4.1.lock
var jars41 string

var java = install.Java{Min: 17, Max: 17}

// Recipes say how Cassandra is installed; the first is the default version.
func Recipes() []install.Recipe {
	return []install.Recipe{
		{Name: Name, Series: "5.0", Summary: "Apache Cassandra 5.0", Wanted: install.BySlow, Jars: jars50, Java: java},
		{Name: Name, Series: "4.1", Summary: "Apache Cassandra 4.1", Wanted: install.ByConformance, Jars: jars41, Java: java},
	}
}

func series() []string {
	var names []string
	for _, r := range Recipes() {
		names = append(names, r.Series)
	}
	return names
}

// supported reports whether a version ("4.1", "4.1.10") belongs to a supported series.
func supported(version string) bool {
	return slices.ContainsFunc(series(), func(s string) bool { return version == s || strings.HasPrefix(version, s+".") })
}

// Patterns of agents, in the folder lib of an installation.
const (
	// jamm measures objects; Cassandra sizes its memtables by it.
	jammPattern = "jamm-*.jar"
	// jolokia answers questions about the server over HTTP.
	jolokiaPattern = "jolokia-*-javaagent.jar"
)

// libraries are the files of an installation that a server is started with.
type libraries struct {
	java, classpath string
	jamm, jolokia   string
}

func librariesOf(ctx context.Context, on files.System, in database.Installation) (libraries, error) {
	lib := filepath.Join(in.Dir, "lib")
	l := libraries{java: in.Programs["java"], classpath: filepath.Join(lib, "*")}
	for pattern, path := range map[string]*string{jammPattern: &l.jamm, jolokiaPattern: &l.jolokia} {
		found := files.Glob(ctx, on, filepath.Join(lib, pattern))
		if len(found) == 0 {
			err := fmt.Errorf("the installation of cassandra in %s lacks %s", in.Dir, pattern)
			return l, advice.With(err, "put the jar into its folder lib; skerry install cassandra has it")
		}
		*path = found[0]
	}
	return l, nil
}

// Upgrades implements database.Upgradable, by the section "Upgrading" of Cassandra's NEWS.txt.
func (*Cassandra) Upgrades() database.Upgrades {
	return database.Upgrades{
		Recipes: Recipes(), Steps: map[string][]string{"4.1": {"5.0"}}, Rule: "Cassandra supports upgrades from 4.0 or 4.1 to 5.0",
	}
}
