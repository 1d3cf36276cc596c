// Package hbase is Apache HBase on HDFS and ZooKeeper, one process per role:
//
//	first node    ZooKeeper  NameNode  HMaster  DataNode  RegionServer
//	other nodes                                 DataNode  RegionServer
//
// or without HDFS, on a directory that all nodes share.
//
// # The bridge
//
// No Go client of HBase is available from a module proxy. The REST and Thrift gateways cost a server thread and a copy
// of every record, and retry operations silently. The driver therefore uses a small Java program (folder bridge)
// around HBase's asynchronous client:
//
//	workers ─► bridge ══ pipe ══► Java: Records ─► HBase's client ─► region servers
//	workers ◄─        ◄═ pipe ══                 ◄─
//
// It is a child of the load driver, so that its sockets and CPU belong to the client's node. Trials that share a
// cluster also share one bridge. Concurrent requests share a write, and replies come as they complete. The bridge
// retries, not the library, so that retries are counted and the outcome of each attempt is known.
//
// The source is embedded and compiled on first use by a compiler in the installation's jars. Another bridge, on the
// first node, queries master and NameNode. The first of these leaves an archive of its classes, with which later
// bridges start faster.
package hbase

import (
	"context"
	_ "embed"
	"time"

	"skerry/internal/database"
	"skerry/internal/install"
	"skerry/internal/load"
)

// Name is how experiments call HBase.
const Name = "hbase"

// The benchmark's table. The family is the one that YCSB's documentation creates.
const (
	table  = "usertable"
	family = "family"
)

//go:embed jars-2.6.lock
var jars26 string

//go:embed jars-2.5.lock
var jars25 string

// Recipe installs HBase 2.6, HDFS and ZooKeeper, and the compiler of the bridge.
var Recipe = newRecipe("2.6", "2024-05", jars26)

// Recipes are the series of HBase, the default first. Both are built for Hadoop 3.
var Recipes = []install.Recipe{Recipe, newRecipe("2.5", "2022-08", jars25)}

func newRecipe(series, released, jars string) install.Recipe {
	return install.Recipe{
		Name: Name, Series: series, Released: released,
		Summary: "Apache HBase on HDFS and ZooKeeper (jars, runs on Java 11 to 17)",
		Wanted:  install.ByConformance,
		Jars:    jars,
		Java:    install.Java{Min: 11, Max: 17},
	}
}

// HBase is HBase as a database. Clients with equal settings share a bridge.
type HBase struct {
	bridges database.ClientPool[settings, *bridge]
}

// New returns HBase.
func New() *HBase { return &HBase{} }

var (
	_ database.External = (*HBase)(nil)
	_ database.Anchored = (*HBase)(nil)

	_ database.Upgradable = (*HBase)(nil)
)

func (*HBase) Name() string { return Name }

// memberMemory: DataNode and RegionServer took 440 MB; the rest is a sixth of the first node's other servers.
const memberMemory = 560 * mib

func (*HBase) Capabilities() database.Capabilities {
	return database.Capabilities{Scan: true, Resize: true, LeaveAbrupt: true, Replication: true, NoLogin: true, Restart: true,
		MinNodes: 1, Memory: memberMemory}
}

func (*HBase) Check(nodes int, options database.Options) error {
	_, err := parseOptions(nodes, options)
	return err
}

func (*HBase) Fixed(nodes []string, given database.Options) map[string]string {
	if len(nodes) == 0 {
		return nil
	}
	return map[string]string{nodes[0]: anchorReason(given["storage"])}
}

func anchorReason(storage any) string {
	if storage == storageDirectory {
		return "the master and ZooKeeper are there"
	}
	return "the master, the NameNode and ZooKeeper are there"
}

func (*HBase) Find(version, from string) (database.Installation, error) {
	return database.Find(Recipes, version, from)
}

func (*HBase) Start(ctx context.Context, env database.Env) (database.Cluster, error) {
	return start(ctx, env)
}

var _ load.Client = (*client)(nil)

// About describes HBase to the laboratory and its documentation.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: Recipes,
	Choices: choices,
	Row:     database.Row{Replicas: "of HDFS' blocks", Smallest: "1 node"},
	Suite:   database.Suite{Takes: 200 * time.Second, Alone: true},
	Smoke: database.Smoke{
		Text: "Smoke test of HBase. Three nodes 5 ms apart, YCSB's workload A on 1,000 records. ZooKeeper, the " +
			"NameNode and the master are on n1; every node has a DataNode and a RegionServer. Needs Java 11 or 17 " +
			"and 2.5 GiB of memory.",
		Options: "{regions: 3}",
	},
}

func choices(p database.Placement) []database.Choice {
	return []database.Choice{{
		Name: "two copies", Options: database.Options{"replication": min(2, len(p.Nodes))}, Reads: database.ReadsLinearizable,
		GivesUp: "rows of a lost server are unavailable until its session expires and its log is replayed",
	}}
}
