package cassandra

import (
	"slices"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"skerry/internal/database"
)

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

// settings are the client's properties, understood. They are comparable: clients with
// the same ones share a session.
type settings struct {
	hosts                 string // addresses, comma separated
	keyspace              string
	user, password        string
	readLevel, writeLevel string
	connections           int
	timeout, connect      time.Duration
	center                string
	contactOnly           bool
	extend                bool
	table, fieldPrefix    string
	fieldCount            int
}

// prefixedProperties are the properties whose names begin with cassandra's prefix: others of that kind
// are refused.
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

// lowerLevels has levels of consistency in lower case: YCSB takes them in any.
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

// consistencyLevel is a level of consistency by its word, which has been checked.
func consistencyLevel(word string) gocql.Consistency {
	return map[string]gocql.Consistency{
		"any": gocql.Any, "one": gocql.One, "two": gocql.Two, "three": gocql.Three, "quorum": gocql.Quorum, "all": gocql.All,
		"local_one": gocql.LocalOne, "local_quorum": gocql.LocalQuorum, "each_quorum": gocql.EachQuorum,
	}[word]
}
