package cassandra

import (
	"fmt"
	"slices"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"skerry/internal/database"
)

// Replication strategies, as the option strategy names them.
const (
	strategySimple  = "simple"  // replicas on the next nodes of the ring, wherever they are
	strategyNetwork = "network" // a data centre a site, replicas in each
)

const (
	defaultHeap        = 256 << 20
	minHeap            = 128 << 20
	defaultReplication = 3
	defaultTokens      = 16 // Cassandra's own
	// defaultRingDelay is the wait for gossip when the ring changes, to which four of the longest round trips are added.
	// Cassandra's default is 30 s. With 2 s a joining member missed the table, and its rows were lost.
	defaultRingDelay = 5 * time.Second
	ringDelayTrips   = 4
	// defaultStart bounds how long one member may take to serve.
	defaultStart = 4 * time.Minute
)

// options are a cluster's settings. What is not named here keeps Cassandra's own default.
type options struct {
	version               string
	strategy              string
	replication           int // of the cluster, or in each data centre
	seeds                 int
	tokens                int // of each member
	heap, memtable        int64
	nativePort            int // clients'
	storagePort           int // members'
	adminPort             int // of the agent that answers questions about the member
	ringDelay             time.Duration
	start                 time.Duration
	commitlogSync         string
	commitlogPeriod       time.Duration
	diskFailure           string
	phi                   int
	hints                 bool
	readLevel, writeLevel string
}

var optionNames = []string{
	"admin_port", "commitlog_sync", "commitlog_sync_period", "disk_failure_policy", "heap", "hinted_handoff",
	"memtable_space", "num_tokens", "phi_convict_threshold", "port", "read_consistency", "replication_factor",
	"ring_delay", "seeds", "start_timeout", "storage_port", "strategy", "version", "write_consistency",
}

// parseOptions parses the options of a cluster of the given size. An unset ring delay is 0.
func parseOptions(nodes int, given database.Options) (options, error) {
	r := database.ReadOptions(ErrOption, given, optionNames...)
	o := options{
		version:       r.Text("version", ""),
		strategy:      r.Choice("strategy", strategySimple, strategySimple, strategyNetwork),
		seeds:         r.Int("seeds", 1, 1000, 1),
		tokens:        r.Int("num_tokens", 1, 1024, defaultTokens),
		heap:          r.Bytes("heap", defaultHeap),
		nativePort:    r.Int("port", 1, 65535, defaultPort),
		storagePort:   r.Int("storage_port", 1, 65535, 7000),
		adminPort:     r.Int("admin_port", 1, 65535, 7199),
		ringDelay:     r.Duration("ring_delay", 0),
		start:         r.Duration("start_timeout", defaultStart),
		commitlogSync: r.Choice("commitlog_sync", "periodic", "batch", "group", "periodic"),
		diskFailure:   r.Choice("disk_failure_policy", "stop", "best_effort", "die", "ignore", "stop", "stop_paranoid"),
		phi:           r.Int("phi_convict_threshold", 5, 16, 8),
		hints:         r.Bool("hinted_handoff", true),
		readLevel:     r.Choice("read_consistency", defaultLevel, readLevels...),
		writeLevel:    r.Choice("write_consistency", defaultLevel, writeLevels...),
	}
	missing := min(defaultReplication, nodes)
	if o.strategy == strategyNetwork {
		missing = 1
	}
	o.replication = r.Int("replication_factor", 1, 1000, missing)
	o.memtable = r.Bytes("memtable_space", o.heap/4)
	period := 10 * time.Second
	if o.commitlogSync == "group" { // a write waits for the end of its window, those of a server that starts as well
		period = 15 * time.Millisecond
	}
	o.commitlogPeriod = r.Duration("commitlog_sync_period", period)
	if r.Err() != nil {
		return o, r.Err()
	}
	return o, o.check(nodes)
}

func (o options) check(nodes int) error {
	ports := map[int]string{}
	for _, p := range []struct {
		name string
		port int
	}{{"port", o.nativePort}, {"storage_port", o.storagePort}, {"admin_port", o.adminPort}} {
		if other := ports[p.port]; other != "" {
			return fmt.Errorf("%w: %s and %s are both %d", ErrOption, other, p.name, p.port)
		}
		ports[p.port] = p.name
	}
	switch {
	case o.version != "" && !supported(o.version):
		return fmt.Errorf("%w: version %s; known: %s", ErrOption, o.version, strings.Join(series(), ", "))
	case nodes < 1:
		return fmt.Errorf("%w: a cluster needs a node", ErrOption)
	case o.seeds > nodes:
		return fmt.Errorf("%w: %d seeds on %d nodes", ErrOption, o.seeds, nodes)
	case o.replication > nodes:
		return fmt.Errorf("%w: replication_factor %d needs as many nodes, there are %d", ErrOption, o.replication, nodes)
	case o.heap < minHeap:
		return fmt.Errorf("%w: heap %d bytes: Cassandra does not run with less than 128MiB", ErrOption, o.heap)
	case o.memtable > o.heap/2:
		return fmt.Errorf("%w: memtable_space is more than half of the heap (%d of %d bytes)", ErrOption, o.memtable, o.heap)
	case o.ringDelay > 0 && o.ringDelay < time.Second:
		return fmt.Errorf("%w: ring_delay %v is below 1s, the interval of gossip", ErrOption, o.ringDelay)
	}
	return nil
}

// Properties of the client. Those that YCSB's cassandra-cql binding has mean the same.
const (
	PropHosts       = "hosts"                           // host:port,host:port,...: whom to ask for the cluster's members
	PropPort        = "port"                            // of hosts that name none; default 9042
	PropKeyspace    = "cassandra.keyspace"              // default ycsb
	PropUser        = "cassandra.username"              //
	PropPassword    = "cassandra.password"              //
	PropReadLevel   = "cassandra.readconsistencylevel"  // default quorum
	PropWriteLevel  = "cassandra.writeconsistencylevel" // default quorum
	PropConnections = "cassandra.coreconnections"       // to each member; default 2
	PropTimeout     = "cassandra.readtimeoutmillis"     // milliseconds for an operation that has no other bound; default 12000
	PropConnect     = "cassandra.connecttimeoutmillis"  // default 5000
	PropContact     = "cassandra.contactonly"           // "true": connect to hosts alone, which are a service that leads to any member
	PropCenter      = "cassandra.localdatacenter"       // whose members are asked first; default: none is nearer than another
	PropSchema      = "cassandra.schema"                // "extend": columns that the workload has and the table lacks are added
	propFieldCount  = "fieldcount"                      // the workload's own
	propFieldPrefix = "fieldnameprefix"                 // the workload's own
	propTable       = "table"                           // the workload's own
)

// Properties lists the client's properties.
func Properties() []string {
	return []string{PropHosts, PropPort, PropKeyspace, PropUser, PropPassword, PropReadLevel, PropWriteLevel,
		PropConnections, PropTimeout, PropConnect, PropCenter, PropContact, PropSchema}
}

const (
	defaultPort     = 9042
	defaultKeyspace = "ycsb"
	defaultTable    = "usertable"
	defaultLevel    = "quorum"
	defaultFields   = 10
	schemaExtend    = "extend"
	schemaKeep      = "keep"
)

// Levels of consistency, in Cassandra's words.
var (
	readLevels  = []string{"one", "two", "three", "quorum", "all", "local_one", "local_quorum"}
	writeLevels = []string{"any", "one", "two", "three", "quorum", "all", "local_one", "local_quorum", "each_quorum"}
)

// settings are the parsed client properties. Clients with equal settings share a session.
type settings struct {
	hosts                 string // addresses, comma separated
	keyspace              string
	user, password        string
	access                string // see database.Access
	readLevel, writeLevel string
	connections           int
	timeout, connect      time.Duration
	center                string
	contactOnly           bool
	extend                bool
	table, fieldPrefix    string
	fieldCount            int
}

// prefixedProperties lists the properties with the prefix cassandra.
func prefixedProperties() []string {
	return slices.DeleteFunc(Properties(), func(p string) bool { return !strings.HasPrefix(p, "cassandra.") })
}

func parseSettings(p map[string]string) (settings, error) {
	p = lowerLevels(p)
	r := database.ReadProperties(ErrProperty, "cassandra.", p, prefixedProperties()...)
	s := settings{
		hosts:       strings.Join(r.Addresses(PropHosts, r.Int(PropPort, 1, 65535, defaultPort)), ","),
		keyspace:    r.Text(PropKeyspace, defaultKeyspace),
		user:        r.Text(PropUser, ""),
		password:    r.Text(PropPassword, ""),
		access:      p[database.PropAccess],
		readLevel:   r.Choice(PropReadLevel, defaultLevel, readLevels...),
		writeLevel:  r.Choice(PropWriteLevel, defaultLevel, writeLevels...),
		connections: r.Int(PropConnections, 1, 1000, 2),
		timeout:     r.Milliseconds(PropTimeout, 12*time.Second),
		connect:     r.Milliseconds(PropConnect, 5*time.Second),
		center:      r.Text(PropCenter, ""),
		contactOnly: r.Choice(PropContact, "false", "false", "true") == "true",
		extend:      r.Choice(PropSchema, schemaKeep, schemaKeep, schemaExtend) == schemaExtend,
		table:       r.Text(propTable, defaultTable),
		fieldPrefix: r.Text(propFieldPrefix, "field"),
		fieldCount:  r.Int(propFieldCount, 1, 100_000, defaultFields),
	}
	return s, r.Err()
}

// lowerLevels lowers the case of consistency levels: YCSB accepts any case.
func lowerLevels(p map[string]string) map[string]string {
	lower := make(map[string]string, len(p))
	for k, v := range p {
		if k == PropReadLevel || k == PropWriteLevel {
			v = strings.ToLower(v)
		}
		lower[k] = v
	}
	return lower
}

func consistencyLevel(word string) gocql.Consistency {
	return map[string]gocql.Consistency{
		"any": gocql.Any, "one": gocql.One, "two": gocql.Two, "three": gocql.Three, "quorum": gocql.Quorum, "all": gocql.All,
		"local_one": gocql.LocalOne, "local_quorum": gocql.LocalQuorum, "each_quorum": gocql.EachQuorum,
	}[word]
}
