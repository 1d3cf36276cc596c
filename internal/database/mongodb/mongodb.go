// Package mongodb is MongoDB: a replica set with a member a node, or a sharded cluster of
// shards, config servers and mongos placed on the nodes.
//
//	replica_set   node:  mongod 27017
//
//	sharded       node:  mongos 27017 ─► config servers 27019 (a replica set)
//	                        └─────────► shard 27018 (a replica set; the next member of
//	                                    another shard on the same node 27028, ...)
//
// The programs come from --from or PATH, since Debian has no MongoDB. The oldest supported
// version is 4.2, by the driver version in go.mod. MongoDB's own driver sends the documented
// commands (replSetInitiate, replSetReconfig, addShard, removeShard, ...).
//
// A record is a document with YCSB's key as _id and binary fields, as in YCSB's own binding.
// The collection is ycsb.usertable, sharded by the hash of _id.
package mongodb

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	drv "go.mongodb.org/mongo-driver/v2/mongo/options"

	"skerry/internal/database"
	"skerry/internal/install"
	"skerry/internal/load"
)

// Name is the name of MongoDB in experiments.
const Name = "mongodb"

// memory is that of a mongod with the smallest WiredTiger cache, by documentation; it was not measured.
const memory = 400 << 20

// Recipe names the programs that a user downloads.
var Recipe = install.Recipe{
	Name:    Name,
	Summary: "MongoDB, replica sets and sharded clusters (your own mongod and mongos)",
	Manual: "MongoDB Community Server 4.2 or newer from MongoDB's download center: an archive mongodb-linux-*.tgz, and unpack it, " +
		"or the packages mongodb-org-server and mongodb-org-mongos (.deb)",
	Programs:    []string{"mongod"},
	Optional:    []string{"mongos"},
	VersionArgs: []string{"--version"},
	// "db version v7.0.14".
	Version: install.MatchVersion(`db version v([0-9][^\s]*)`),
	Try:     tryPrograms,
}

// routerVersion finds it in "mongos version v7.0.14".
var routerVersion = regexp.MustCompile(`mongos version v([0-9][^\s]*)`)

// MongoDB is MongoDB as a database. Its clients are the Pool's.
type MongoDB struct{ Pool }

// New returns MongoDB.
func New() *MongoDB { return &MongoDB{} }

var (
	_ database.Database = (*MongoDB)(nil)
	_ database.Anchored = (*MongoDB)(nil)

	_ database.Published = (*MongoDB)(nil)
)

func (*MongoDB) Name() string { return Name }

func (*MongoDB) Capabilities() database.Capabilities {
	return database.Capabilities{
		Scan: true, Resize: true, LeaveAbrupt: true, Replication: true, Restart: true,
		LazyTables: true, NeedsUser: true, MinNodes: 1, MaxNodes: maxMembers, Memory: memory,
	}
}

func (*MongoDB) Frail(nodes int, options database.Options) string {
	if o, err := parseOptions(nodes, options); err != nil || !o.sharded || o.replicas > 1 {
		return ""
	}
	return loneShard
}

const loneShard = "a shard of one member that is lost takes its records with it"

func (*MongoDB) Check(nodes int, options database.Options) error {
	_, err := parseOptions(nodes, options)
	return err
}

// Ports implements database.Published: a member's name in its set is its address.
func (*MongoDB) Ports(nodes int, options database.Options) (database.Ports, error) {
	o, err := parseOptions(nodes, options)
	if err != nil {
		return database.Ports{}, err
	}
	ports := []int{o.port}
	for _, p := range o.planProcesses(make([]string, nodes)) {
		if !slices.Contains(ports, p.port) {
			ports = append(ports, p.port)
		}
	}
	return database.Ports{All: ports}, nil
}

// Fixed implements database.Anchored: config servers and shards of several members must stay.
func (*MongoDB) Fixed(nodes []string, options database.Options) map[string]string {
	o, err := parseOptions(len(nodes), options)
	if err != nil || !o.sharded {
		return nil
	}
	fixed := make(map[string]string)
	for i, n := range nodes {
		if i < o.configServers {
			fixed[n] = "a config server is there"
		} else if o.replicas > 1 {
			fixed[n] = "it holds a member of a shard's replica set"
		}
	}
	return fixed
}

func (*MongoDB) Find(version, from string) (database.Installation, error) {
	return database.Find([]install.Recipe{Recipe}, version, from)
}

// Pool shares driver clients between clients with equal settings. The zero Pool is ready.
type Pool struct {
	drivers database.ClientPool[settings, *driverClient]
}

func (*Pool) Properties() []string { return Properties() }

func (*Pool) ServerProperties(servers []string, _ string) map[string]string {
	return map[string]string{PropURL: "mongodb://" + strings.Join(servers, ",") + "/" + databaseName}
}

func (*Pool) ServerVersion(ctx context.Context, server string, properties map[string]string) (_ string, err error) {
	s, err := parseSettings(properties)
	if err != nil {
		return "", err
	}
	c, err := connect(s, drv.Client().SetHosts([]string{server}).SetDirect(true))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, disconnect(c.client)) }()
	var found struct {
		Version  string `bson:"version"`
		FerretDB struct {
			Version string `bson:"version"`
		} `bson:"ferretdb"` // which reports the version of MongoDB that it resembles, too
	}
	if err := c.client.Database("admin").RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Decode(&found); err != nil {
		return "", err
	}
	if v := found.FerretDB.Version; v != "" {
		return "FerretDB " + v, nil
	}
	return found.Version, nil
}

// Open returns a client for one worker, of MongoDB or a database with its protocol.
func (p *Pool) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, err
	}
	return p.open(ctx, s)
}
