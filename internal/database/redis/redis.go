// Package redis is Redis Cluster: one redis-server a node, the cluster formed over its
// own protocol, members joining and leaving by the steps that redis-cli documents, and
// a client for the load driver.
//
// # Records and the index
//
// A record is a hash under the key that YCSB gives it, as YCSB's own Redis binding has
// it, so that either can read what the other loaded; tables are not told apart. A hash
// table has no order, so scans need an index. YCSB's binding keeps one sorted set for
// all keys: one slot, on one node, which every insert of the cluster goes to. Here the
// index is in 32 parts, each a sorted set for the keys of 512 neighbouring slots, which
// lies in one of these slots itself:
//
//	slots    0 ........ 511 512 ...... 1023 1024 ... ... 16383
//	records  user1   user7    user3  user9   user2   ...
//	index     [part 0: user1   [part 1: user3  ...    [part 31:
//	                  user7]           user9]                 ...]
//	         └──── node 1 ────┘└──────────── node 2 ...
//
// So a record and its entry are nearly always on the same node; an insert sends both
// commands to it in one write and one round trip. Where a part is depends on slots
// alone: it stays right when slots move, and where a border between nodes cuts through
// a part's slots the two commands go to two nodes at the same time. Records keep being
// spread over all 16384 slots, which putting each record into its part's slot would
// have spoiled for the sake of a transaction around the two commands.
//
// The invariant is that every record whose insert was acknowledged has an entry: the
// entry is written before the record and removed after it, and an insert that did
// only one of the two is not acknowledged. An entry without a record is harmless: scans
// pass over it. (An insert and a delete of the same key at the same time can break it;
// YCSB never does that.)
//
// A scan asks all 32 parts at the same time for as many keys as its share most likely
// is, merges the answers in order, asks again where that was too little, and fetches
// the records, those of each node in one pipeline and all nodes at the same time.
// The index is kept when the workload scans, or as redis.scan says; a workload
// that does not scan pays nothing.
//
// # The client
//
// CLUSTER SLOTS is asked by go-redis' clients. Operations go over connections of
// their own, one for each worker and node as in YCSB, in one write and, replies being
// read in place, without allocating: 3 us of CPU a read where go-redis' own commands
// cost 5 to 7. Nothing is tried again; MOVED and ASK are followed, as the protocol demands
// of a client.
package redis

import (
	"context"
	"fmt"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"skerry/internal/database"
	"skerry/internal/load"
)

// Redis is Redis Cluster, or Valkey's, as a database. Clients with equal settings share a router.
type Redis struct {
	kind    kind
	routers database.ClientPool[settings, *router]
}

// New returns Redis Cluster. go-redis prints failures to connect to stderr as well as
// returning them; that is turned off, for this process.
func New() *Redis { return newKind(redisKind) }

// NewValkey returns Valkey, which speaks the same protocol.
func NewValkey() *Redis { return newKind(valkeyKind) }

func newKind(k kind) *Redis {
	goredis.SetLogger(&logging.VoidLogger{})
	return &Redis{kind: k}
}

var (
	_ database.Database = (*Redis)(nil)
	_ database.Anchored = (*Redis)(nil)

	_ database.Announced = (*Redis)(nil)
)

// Name implements database.Database.
func (d *Redis) Name() string { return d.kind.name }

// memory is what a server takes with 20,000 records of 1 kB, in bytes, and half as much
// again for its child that rewrites the append-only file.
const memory = 32 << 20

// Capabilities implements database.Database. Three masters are the least that can
// agree on one of them having failed.
func (*Redis) Capabilities() database.Capabilities {
	return database.Capabilities{Scan: true, Resize: true, LeaveAbrupt: true, Replication: true, Restart: true, MinNodes: minMasters, Memory: memory}
}

// Fixed implements database.Anchored: without replicas, three masters must stay. (Where
// there are more, or replicas, any node can leave while enough are left.)
func (*Redis) Fixed(nodes []string, given database.Options) map[string]string {
	o, err := parseOptions(len(nodes), given)
	if err != nil || o.replicas > 0 || o.masters > minMasters {
		return nil
	}
	fixed := make(map[string]string, len(nodes))
	for _, n := range nodes {
		fixed[n] = fewMasters
	}
	return fixed
}

// fewMasters is why a master cannot leave.
const fewMasters = "the cluster needs at least 3 masters"

// Ports implements database.Announced: members announce addresses and ports of their own,
// and those of the bus between them.
func (*Redis) Ports(nodes int, given database.Options) (database.Ports, error) {
	o, err := parseOptions(nodes, given)
	return database.Ports{All: []int{o.port, o.port + busOffset}}, err
}

// Check implements database.Database.
func (*Redis) Check(nodes int, options database.Options) error {
	_, err := parseOptions(nodes, options)
	return err
}

// Find implements database.Database.
func (d *Redis) Find(from string) (database.Installation, error) {
	return database.Find(d.kind.recipe, from)
}

// Properties implements database.Configurable.
func (*Redis) Properties() []string { return Properties() }

// Open implements database.Database. The properties are listed by Properties; others
// are the workload's and not looked at, but for scanproportion.
func (d *Redis) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, err
	}
	router, release, err := d.routers.Acquire(ctx, s, database.ClientSource[*router]{
		Open:  func(ctx context.Context) (*router, error) { return newRouter(ctx, s) },
		Close: (*router).close,
	})
	if err != nil {
		return nil, fmt.Errorf("opening a client of %s: %w", d.kind.name, err)
	}
	c := &client{router: router, release: release}
	c.connectAll(ctx)
	return c, nil
}
