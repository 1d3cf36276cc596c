package hbase

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/machine/files"
)

// ErrOption marks an option that cannot be used.
var ErrOption = errors.New("invalid option of hbase")

// Kinds of storage.
const (
	storageHDFS      = "hdfs"
	storageDirectory = "directory"
)

// mib is a mebibyte, in bytes.
const mib = 1 << 20

type options struct {
	storage      string
	replication  int // of HDFS' blocks
	regions      int // of the table, for each node
	wal          string
	durability   string // of the table, in HBase's spelling
	session      time.Duration
	handlers     int // threads of each server that carry out calls
	zookeeper    int64
	nameNode     int64
	dataNode     int64
	master       int64
	regionServer int64
	client       int64
}

var optionNames = []string{
	"client_heap", "datanode_heap", "durability", "handlers", "master_heap", "namenode_heap", "regions",
	"regionserver_heap", "replication", "storage", "wal", "zookeeper_heap", "zookeeper_session_timeout",
}

// durabilities maps the acknowledgement levels of experiments to HBase's names.
var durabilities = map[string]string{
	"use_default": "USE_DEFAULT", "skip_wal": "SKIP_WAL", "async_wal": "ASYNC_WAL", "sync_wal": "SYNC_WAL", "fsync_wal": "FSYNC_WAL",
}

const (
	// defaultReplication lets one node of three leave.
	defaultReplication = 2
	// regionsPerNode is what YCSB's documentation advises.
	regionsPerNode = 10
	// minSession keeps sessions of busy JVMs alive.
	minSession = 4 * time.Second
	// minHeap is what the smallest of the servers starts with.
	minHeap = 32 * mib
)

func parseOptions(nodes int, given database.Options) (options, error) {
	r := database.ReadOptions(ErrOption, given, optionNames...)
	o := options{
		storage:      r.Choice("storage", storageHDFS, storageHDFS, storageDirectory),
		replication:  r.Int("replication", 1, 10, min(nodes, defaultReplication)),
		regions:      r.Int("regions", 1, 1000, regionsPerNode),
		durability:   durabilities[r.Choice("durability", "use_default", "use_default", "skip_wal", "async_wal", "sync_wal", "fsync_wal")],
		session:      r.Duration("zookeeper_session_timeout", 20*time.Second),
		handlers:     r.Int("handlers", 1, 1000, 10),
		zookeeper:    r.Bytes("zookeeper_heap", 48*mib),
		nameNode:     r.Bytes("namenode_heap", 96*mib),
		dataNode:     r.Bytes("datanode_heap", 64*mib),
		master:       r.Bytes("master_heap", 192*mib),
		regionServer: r.Bytes("regionserver_heap", 256*mib),
		client:       r.Bytes("client_heap", 128*mib),
	}
	// HBase's default log writes all copies at the same time; it needs HDFS.
	wal := "asyncfs"
	if o.storage == storageDirectory {
		wal = "filesystem"
	}
	o.wal = r.Choice("wal", wal, "asyncfs", "filesystem")
	if err := r.Err(); err != nil {
		return o, err
	}
	for _, heap := range []int64{o.zookeeper, o.nameNode, o.dataNode, o.master, o.regionServer, o.client} {
		if heap < minHeap {
			return o, fmt.Errorf("%w: a heap of %d bytes is below %d", ErrOption, heap, minHeap)
		}
	}
	switch {
	case o.session < minSession:
		return o, fmt.Errorf("%w: zookeeper_session_timeout %v is below %v", ErrOption, o.session, minSession)
	case o.storage == storageDirectory && r.Has("replication"):
		return o, fmt.Errorf("%w: replication is HDFS', and storage: directory has none", ErrOption)
	case o.storage == storageDirectory && o.wal != "filesystem":
		return o, fmt.Errorf("%w: wal: asyncfs needs storage: hdfs", ErrOption)
	case o.replication > nodes:
		return o, fmt.Errorf("%w: replication %d needs as many nodes, there are %d", ErrOption, o.replication, nodes)
	}
	return o, nil
}

// ErrProperty marks a client property that cannot be used.
var ErrProperty = errors.New("bad property")

// Properties of the client. Those that YCSB's own HBase binding has mean the same.
const (
	PropQuorum    = "hbase.zookeeper.quorum" // host:port,host:port,...: ZooKeeper
	PropFamily    = "columnfamily"           // default "family"
	PropTimeout   = "hbase.timeout"          // milliseconds for one attempt, and for an operation that nothing else bounds; default 10000
	PropRetries   = "hbase.retries"          // attempts after the first; default 15, HBase's own
	PropPause     = "hbase.pause"            // milliseconds before the second attempt, more before later ones; default 100, HBase's own
	PropJava      = "hbase.java"             // the Java that runs the bridge; default: that of the installation
	PropClassPath = "hbase.classpath"        // the bridge's classes and HBase's jars; default: those of the installation
	PropHeap      = "hbase.heap"             // of the bridge, in MiB; default 128
	PropHosts     = "hbase.hosts"            // a hosts file that the bridge uses instead of a name server
	PropBridge    = "hbase.bridge"           // host:port of a bridge that runs already, for clients with the default settings
)

// Properties lists the client's properties.
func Properties() []string {
	return []string{PropQuorum, PropFamily, PropTimeout, PropRetries, PropPause, PropJava, PropClassPath, PropHeap, PropHosts, PropBridge}
}

const (
	defaultTimeout = 10 * time.Second
	defaultRetries = 15
	defaultPause   = 100 * time.Millisecond
	defaultHeap    = 128 // MiB
)

type settings struct {
	quorum, family         string
	timeout, pause         time.Duration
	retries, heap          int
	java, classpath, hosts string
	bridgeAddr             string
	table                  string // which a client creates, "" for one that exists
}

func parseSettings(p map[string]string) (settings, error) {
	r := database.ReadProperties(ErrProperty, "hbase.", p, Properties()...)
	// Addresses are separated in the form that HBase itself takes them in.
	quorum := ""
	for i, a := range r.Addresses(PropQuorum, portZooKeeper) {
		if i > 0 {
			quorum += ","
		}
		quorum += a
	}
	s := settings{
		quorum: quorum, family: r.Text(PropFamily, family),
		timeout: r.Milliseconds(PropTimeout, defaultTimeout), pause: r.Milliseconds(PropPause, defaultPause),
		retries: r.Int(PropRetries, 0, 1000, defaultRetries), heap: r.Int(PropHeap, minHeap/mib, 1<<20, defaultHeap),
		java: r.Text(PropJava, ""), classpath: r.Text(PropClassPath, ""), hosts: r.Text(PropHosts, ""), bridgeAddr: r.Text(PropBridge, ""),
		table: r.Text(database.PropTable, ""),
	}
	return s, r.Err()
}

func (s settings) isDefault() bool {
	return s.family == family && s.timeout == defaultTimeout && s.pause == defaultPause && s.retries == defaultRetries
}

func (s settings) bridgeCommand(ctx context.Context, on files.System, more ...property) command {
	jar, _, _ := strings.Cut(s.classpath, ":")
	return bridgeCommand(s.java, s.classpath, s.hosts, int64(s.heap)*mib, archiveFlags(ctx, on, jar, s.java), append(s.bridgeProperties(), more...))
}

// bridgeProperties are a bridge's settings: HBase's library tries once, the bridge retries.
func (s settings) bridgeProperties() []property {
	return []property{
		{"hbase.zookeeper.quorum", s.quorum},
		{"hbase.client.retries.number", "0"},
		{"hbase.client.pause", strconv.FormatInt(s.pause.Milliseconds(), 10)},
		{"hbase.client.operation.timeout", strconv.FormatInt(s.timeout.Milliseconds(), 10)},
		{"hbase.client.meta.operation.timeout", strconv.FormatInt(s.timeout.Milliseconds(), 10)},
		{"hbase.rpc.timeout", strconv.FormatInt(s.timeout.Milliseconds(), 10)},
		{"bridge.family", s.family},
		{"bridge.timeout", strconv.FormatInt(s.timeout.Milliseconds(), 10)},
		{"bridge.retries", strconv.Itoa(s.retries)},
		{"bridge.pause", strconv.FormatInt(s.pause.Milliseconds(), 10)},
	}
}
