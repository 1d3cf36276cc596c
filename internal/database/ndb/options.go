package ndb

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// ErrOption marks an invalid option.
var ErrOption = errors.New("invalid option of " + Name)

const (
	managePort = 1186 // of the management node
	dataPort   = 2202 // where data nodes talk
	// Identifiers: data nodes have 1 to maxNodes, SQL nodes those sqlID above.
	manageID = 49
	sqlID    = 100
	maxNodes = 48
)

// options are a cluster's settings. Unset ones keep NDB's defaults, except memory.
type options struct {
	replicas, port, threads, connections int
	data                                 int64 // bytes for rows
	heartbeat, checkpoint, deadlock      time.Duration
	member                               string
}

var optionNames = []string{
	"data_memory", "heartbeat_interval_db_db", "max_connections", "max_no_of_execution_threads", "member", "no_of_replicas",
	"port", "time_between_global_checkpoints", "transaction_deadlock_detection_timeout",
}

func parseOptions(nodes int, given database.Options) (options, error) {
	r := database.ReadOptions(ErrOption, given, optionNames...)
	o := options{
		replicas:    r.Int("no_of_replicas", 1, 4, 2),
		port:        r.Int("port", 1, 65535, mysql.Port),
		threads:     r.Int("max_no_of_execution_threads", 2, 72, 2),
		connections: r.Int("max_connections", 10, 100_000, 500),
		data:        r.Bytes("data_memory", 80<<20),
		heartbeat:   r.Duration("heartbeat_interval_db_db", 0),
		checkpoint:  r.Duration("time_between_global_checkpoints", 0),
		deadlock:    r.Duration("transaction_deadlock_detection_timeout", 0),
		member:      r.Choice("member", mysql.Nearest, mysql.Members()...),
	}
	switch {
	case o.data < 1<<20:
		r.Reject("data_memory", "1MiB or more")
	case o.heartbeat != 0 && o.heartbeat < 10*time.Millisecond:
		r.Reject("heartbeat_interval_db_db", "10ms or more")
	case o.checkpoint != 0 && (o.checkpoint < 20*time.Millisecond || o.checkpoint > 32*time.Second):
		r.Reject("time_between_global_checkpoints", "a time from 20ms to 32s")
	case o.deadlock != 0 && o.deadlock < 50*time.Millisecond:
		r.Reject("transaction_deadlock_detection_timeout", "50ms or more")
	case o.port == managePort || o.port == dataPort:
		r.Reject("port", "free: NDB itself listens there")
	}
	if r.Err() != nil {
		return o, r.Err()
	}
	if nodes < o.replicas || nodes%o.replicas != 0 || nodes > maxNodes {
		return o, fmt.Errorf("%w: %d nodes: node groups are of %d (no_of_replicas), and there are %d data nodes at most",
			ErrOption, nodes, o.replicas, maxNodes)
	}
	return o, nil
}

const (
	// deadlockTimeout is NDB's default time after which a waiting operation counts as deadlocked.
	deadlockTimeout = 1200 * time.Millisecond
	// deadlockTrips are added to it: a write passes all replicas and back three times, and so does what it waits for.
	deadlockTrips = 10
)

// deadlockTimeout is the cluster's own, with room for its longest round trip.
func (o options) deadlockTimeout(rtt time.Duration) time.Duration {
	if o.deadlock != 0 {
		return o.deadlock
	}
	return deadlockTimeout + deadlockTrips*rtt
}

// maxRow is the space for fields in a row of NDB, in bytes (30,000 with the key).
const maxRow = 29_000

// column is the type of a field: VARBINARY while a row of ten fits, since BLOBs cost a lock and a round trip.
func column(size int) string {
	if 10*size > maxRow {
		return mysql.Blob(size)
	}
	return fmt.Sprintf("VARBINARY(%d)", max(size, 255))
}

// member is a node of the lab in the cluster: a data node and a SQL node.
type member struct {
	*mysql.Server
	id int // of its data node
}

func (m member) sqlID() int      { return sqlID + m.id }
func (m member) dataDir() string { return filepath.Join(m.Dir, "ndb") }

// noGroup is the node group of a data node before CREATE NODEGROUP.
const noGroup = 65536

// config is config.ini. Data nodes up to the identifier formed founded the cluster; later ones are in no node group.
func (o options) config(manager host.Host, members []member, formed int) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("[ndbd default]")
	line("NoOfReplicas=%d", o.replicas)
	line("DataMemory=%d", o.data)
	line("SharedGlobalMemory=33554432")
	line("DiskPageBufferMemory=4194304") // the least: no table is on disk
	line("MaxNoOfExecutionThreads=%d", o.threads)
	line("NoOfFragmentLogFiles=4")
	line("InitFragmentLogFiles=SPARSE")
	line("ServerPort=%d", dataPort)
	if o.heartbeat > 0 {
		line("HeartbeatIntervalDbDb=%d", o.heartbeat.Milliseconds())
	}
	if o.checkpoint > 0 {
		line("TimeBetweenGlobalCheckpoints=%d", o.checkpoint.Milliseconds())
	}
	if o.deadlock > 0 {
		line("TransactionDeadlockDetectionTimeout=%d", o.deadlock.Milliseconds())
	}
	line("\n[ndb_mgmd]\nNodeId=%d\nHostName=%s\nPortNumber=%d\nDataDir=%s", manageID, manager.Addr(), managePort, manageDir(manager))
	for _, m := range members {
		line("\n[ndbd]\nNodeId=%d\nHostName=%s\nDataDir=%s", m.id, m.Host.Addr(), m.dataDir())
		if m.id > formed {
			line("NodeGroup=%d", noGroup)
		}
	}
	for _, m := range members {
		line("\n[mysqld]\nNodeId=%d\nHostName=%s", m.sqlID(), m.Host.Addr())
	}
	return b.String()
}

func manageDir(h host.Host) string { return filepath.Join(h.Dir(), Name+"-management") }

// installSettings returns the settings that a SQL node's data directory is created with. Rows are NDB's: InnoDB has the
// server's own tables.
func installSettings(ctx context.Context, on files.System, in database.Installation) mysql.Settings {
	return mysql.InstallSettings(ctx, on, in, 16<<20)
}

func (o options) settings(m member, install mysql.Settings, connect string) mysql.Settings {
	s := slices.Clone(install)
	s.AddServer(m.Host, m.Data(), o.port, o.connections)
	s.Add("skip-log-bin", "ON")
	s.Add("server-id", m.id)
	s.Add("ndbcluster", "ON")
	s.Add("ndb-connectstring", connect)
	s.Add("ndb-nodeid", m.sqlID())
	return s
}
