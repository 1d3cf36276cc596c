package hbase

import (
	"errors"
	"fmt"
	"time"

	"skerry/internal/database"
)

// ErrOption marks an option that cannot be used.
var ErrOption = errors.New("bad option of hbase")

// Kinds of storage.
const (
	storageHDFS      = "hdfs"
	storageDirectory = "directory"
)

// mib is a mebibyte, in bytes.
const mib = 1 << 20

// options are a cluster's settings.
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

// optionNames are the options that experiments may give.
var optionNames = []string{
	"client_heap", "datanode_heap", "durability", "handlers", "master_heap", "namenode_heap", "regions",
	"regionserver_heap", "replication", "storage", "wal", "zookeeper_heap", "zookeeper_session_timeout",
}

// durabilities maps how an experiment says when a write is acknowledged to HBase's word.
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

// parseOptions understands the options of a cluster on so many nodes.
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
	// The write-ahead log that asks the copies at the same time is HBase's default; it
	// knows HDFS alone.
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
