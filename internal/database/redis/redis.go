// Package redis is Redis Cluster with one server per node.
//
// # Records and the index
//
// A record is a hash under YCSB's key, as in YCSB's Redis binding, so that both can read each other's data. Hashes
// have no order, so scans need an index. YCSB's binding keeps one sorted set, whose node receives every insert. Here
// the index has 32 parts: sorted sets for the keys of 512 neighbouring slots, in one of these slots:
//
//	slots    0 ........ 511 512 ...... 1023 1024 ... ... 16383
//	records  user1   user7    user3  user9   user2   ...
//	index     [part 0: user1   [part 1: user3  ...    [part 31:
//	                  user7]           user9]                 ...]
//	         └──── node 1 ────┘└──────────── node 2 ...
//
// A record and its entry are nearly always on the same node, which receives both commands of an insert in one write.
// The location of a part depends on slots alone, so it stays valid when slots move. A transaction around both commands
// would require all records in their part's slot.
//
// Invariant: every record with an acknowledged insert has an entry. The entry is written before the record and removed
// after it, and an insert that did only one of the two is not acknowledged. Scans skip an entry without a record. A
// concurrent insert and delete of the same key can break the invariant; YCSB never issues them.
//
// A scan queries all parts at the same time for the probable number of keys, merges the answers, and queries again if
// keys are missing. The index is written if the workload scans or redis.scan is set; other workloads pay nothing.
//
// # The client
//
// go-redis queries CLUSTER SLOTS. Operations use separate connections, one per worker and node as in YCSB, with one
// write and replies read in place: 3 us of CPU a read instead of 5 to 7 with go-redis. The client follows MOVED and
// ASK, and retries nothing else.
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

// New returns Redis Cluster. It turns off go-redis' log, which repeats returned errors on stderr.
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

	_ database.Published = (*Redis)(nil)
)

func (d *Redis) Name() string { return d.kind.name }

// memory is for 20,000 records of 1 kB and half as much for the rewrite of the append-only file, in bytes.
const memory = 32 << 20

func (*Redis) Capabilities() database.Capabilities {
	return database.Capabilities{
		Scan: true, Resize: true, LeaveAbrupt: true, Replication: true, Restart: true,
		LazyTables: true, MinNodes: minMasters, Memory: memory,
	}
}

// Fixed implements database.Anchored: without replicas, the last three masters must stay.
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

const fewMasters = "the cluster needs at least 3 masters"

// Ports implements database.Published: the client port and the port of the cluster bus.
func (*Redis) Ports(nodes int, given database.Options) (database.Ports, error) {
	o, err := parseOptions(nodes, given)
	return database.Ports{All: []int{o.port, o.port + busOffset}}, err
}

func (*Redis) Check(nodes int, options database.Options) error {
	_, err := parseOptions(nodes, options)
	return err
}

func (d *Redis) Find(version, from string) (database.Installation, error) {
	return database.Find(d.kind.recipes, version, from)
}

func (*Redis) Properties() []string { return Properties() }

// Open implements database.Database. Of the workload's properties only scanproportion matters.
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
