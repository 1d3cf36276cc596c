package mongodb

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	drv "go.mongodb.org/mongo-driver/v2/mongo/options"

	"skerry/internal/database"
)

// ErrOption marks an option that cannot be used.
var ErrOption = errors.New("invalid option of mongodb")

const (
	defaultPort = 27017
	// MongoDB's own limits of a replica set.
	maxMembers = 50
	maxVoters  = 7

	topologyReplicaSet = "replica_set"
	topologySharded    = "sharded"
)

// options are the settings of a cluster. The cache has the minimum size; others keep MongoDB's defaults.
type options struct {
	sharded                         bool
	shards, replicas, configServers int
	mongos                          []string // names of nodes; nil: all
	port                            int

	priorities        map[string]float64 // by node; default 1
	hidden, nonVoting []string

	write, read, preference string
	cache                   int64 // bytes
	oplog                   int64 // bytes, 0: MongoDB's own
	election, heartbeat     time.Duration
	orphans                 time.Duration // delay of orphan clean-up, 0: MongoDB's own
}

func parseOptions(nodes int, given database.Options) (options, error) {
	r := database.ReadOptions(ErrOption, given, "topology", "shards", "replicas", "config_servers", "mongos", "port",
		"priorities", "hidden", "non_voting", "write_concern", "read_concern", "read_preference",
		"cache", "oplog", "election_timeout", "heartbeat_interval", "orphan_cleanup_delay")
	o := options{
		sharded: r.Choice("topology", topologyReplicaSet, topologyReplicaSet, topologySharded) == topologySharded,
		port:    r.Int("port", 1, 65535-1000, defaultPort), mongos: r.List("mongos"),
		hidden: r.List("hidden"), nonVoting: r.List("non_voting"),
		write: r.Text("write_concern", ""),
		read:  r.Choice("read_concern", "", "local", "available", "majority", "linearizable", "snapshot"),
		preference: r.Choice("read_preference", "primary", "primary", "primaryPreferred", "secondary",
			"secondaryPreferred", "nearest"),
		cache: r.Bytes("cache", 256<<20), oplog: r.Bytes("oplog", 0),
		election: r.Duration("election_timeout", 0), heartbeat: r.Duration("heartbeat_interval", 0),
		orphans: r.Duration("orphan_cleanup_delay", 0),
	}
	o.replicas = r.Int("replicas", 1, maxMembers, 1)
	o.shards = r.Int("shards", 1, 1000, max(1, nodes/o.replicas))
	o.configServers = r.Int("config_servers", 1, maxMembers, min(nodes, 3))
	if !r.Has("config_servers") && o.replicas == 1 && o.shards == nodes {
		o.configServers = min(nodes, maxVoters) // one on every node, as in CLOUDS
	}
	var err error
	if o.priorities, err = parsePriorities(r.List("priorities")); err != nil {
		return o, err
	}
	if o.write != "" && o.write != "majority" {
		if n, err := strconv.Atoi(o.write); err != nil || n < 1 || n > maxMembers {
			r.Reject("write_concern", fmt.Sprintf("majority or a number of members, 1 to %d", maxMembers))
		}
	}
	if err := r.Err(); err != nil {
		return o, err
	}
	return o, o.check(nodes, r)
}

func parsePriorities(list []string) (map[string]float64, error) {
	priorities := make(map[string]float64)
	for _, p := range list {
		node, value, _ := strings.Cut(p, "=")
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || f < 0 || f > 1000 {
			return nil, fmt.Errorf("%w: priorities: %q is not NODE=PRIORITY with a priority from 0 to 1000", ErrOption, p)
		}
		priorities[node] = f
	}
	return priorities, nil
}

func (o options) check(nodes int, r *database.SettingReader) error {
	onlySharded := []string{"shards", "replicas", "config_servers", "mongos", "orphan_cleanup_delay"}
	onlySet := []string{"priorities", "hidden", "non_voting"}
	wrong, right := onlySharded, topologySharded
	if o.sharded {
		wrong, right = onlySet, topologyReplicaSet
	}
	for _, name := range wrong {
		if r.Has(name) {
			return fmt.Errorf("%w: %s is for topology: %s", ErrOption, name, right)
		}
	}
	switch {
	case !o.sharded:
		if nodes > maxMembers {
			return fmt.Errorf("%w: %d nodes: a replica set has at most %d members", ErrOption, nodes, maxMembers)
		}
	case o.replicas > nodes:
		return fmt.Errorf("%w: %d replicas of a shard need as many nodes, there are %d", ErrOption, o.replicas, nodes)
	case o.configServers > nodes:
		return fmt.Errorf("%w: %d config servers need as many nodes, there are %d", ErrOption, o.configServers, nodes)
	}
	return nil
}

// Roles of processes.
const (
	roleMember = "mongod" // of a replica set that serves clients
	roleShard  = "shard"
	roleConfig = "config"
	roleRouter = "mongos"
)

const (
	setName    = "rs0"
	configName = "config"
	// Offsets from the client port: MongoDB's defaults, and memberStride for further members on a node.
	shardOffset  = 1
	configOffset = 2
	memberStride = 10
)

type process struct {
	role string
	set  string // its replica set, "" for a mongos
	node int
	port int
}

// planProcesses places a cluster's processes. Members of a shard are on different nodes; so are the first members
// of shards, which spreads the primaries.
func (o options) planProcesses(nodes []string) []process {
	if !o.sharded {
		var all []process
		for i := range nodes {
			all = append(all, process{role: roleMember, set: setName, node: i, port: o.port})
		}
		return all
	}
	var all []process
	for i := range o.configServers {
		all = append(all, process{role: roleConfig, set: configName, node: i, port: o.port + configOffset})
	}
	on := make([]int, len(nodes)) // members of shards
	for s := range o.shards {
		for r := range o.replicas {
			node := (s + r) % len(nodes)
			if o.shards*o.replicas <= len(nodes) {
				node = s + r*o.shards
			}
			all = append(all, process{role: roleShard, set: shardName(s), node: node, port: o.port + shardOffset + on[node]*memberStride})
			on[node]++
		}
	}
	for i, n := range nodes {
		if len(o.mongos) == 0 || slices.Contains(o.mongos, n) {
			all = append(all, process{role: roleRouter, node: i, port: o.port})
		}
	}
	return all
}

func shardName(i int) string { return fmt.Sprint("shard", i) }

// ErrProperty marks a client property that cannot be used.
var ErrProperty = errors.New("bad property")

// Properties of the client.
const (
	PropURL     = "mongodb.url"     // mongodb://host:port,.../ycsb?replicaSet=...&w=...; YCSB's own property
	PropRetry   = "mongodb.retry"   // have the driver try operations again that it knows to be safe; default false
	PropTimeout = "mongodb.timeout" // milliseconds for an operation that has no other bound; default 10000
)

// Properties lists the client's properties.
func Properties() []string { return []string{PropURL, PropRetry, PropTimeout} }

const defaultTimeout = 10 * time.Second

type settings struct {
	url, database string
	access        string // see database.Access
	retry         bool
	timeout       time.Duration
}

func parseSettings(p map[string]string) (settings, error) {
	r := database.ReadProperties(ErrProperty, "mongodb.", p, Properties()...)
	s := settings{
		url: r.Text(PropURL, ""), database: databaseName, access: p[database.PropAccess],
		retry: r.Bool(PropRetry, false), timeout: r.Milliseconds(PropTimeout, defaultTimeout),
	}
	if err := r.Err(); err != nil {
		return s, err
	}
	if s.url == "" {
		return s, fmt.Errorf("%w: %s is missing (mongodb://host:port,.../ycsb)", ErrProperty, PropURL)
	}
	o := drv.Client().ApplyURI(s.url)
	if err := o.Validate(); err != nil {
		return s, fmt.Errorf("%w: %s: %w", ErrProperty, PropURL, err)
	}
	if !o.WriteConcern.Acknowledged() {
		return s, fmt.Errorf("%w: %s: w=0: writes that no server acknowledges cannot be counted: "+
			"set w=1, a larger number or majority", ErrProperty, PropURL)
	}
	_, rest, _ := strings.Cut(s.url, "://")
	if _, path, ok := strings.Cut(rest, "/"); ok {
		if name, _, _ := strings.Cut(path, "?"); name != "" {
			s.database = name
		}
	}
	return s, nil
}
