package ndb

import (
	"errors"
	"fmt"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
)

// ErrOption marks an option that cannot be used.
var ErrOption = errors.New("bad option of " + Name)

const (
	managePort = 1186 // of the management node
	dataPort   = 2202 // where data nodes talk
	// Identifiers: data nodes have 1 to maxNodes, SQL nodes those sqlID above.
	manageID = 49
	sqlID    = 100
	maxNodes = 48
)

// options are a cluster's settings. What is not named keeps NDB's own default, but for
// memory.
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

// parseOptions understands the options of a cluster on so many nodes.
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
		return o, fmt.Errorf("%w: %d nodes: node groups are of %d (no_of_replicas), and there are %d data nodes at most", ErrOption, nodes, o.replicas, maxNodes)
	}
	return o, nil
}

const (
	// deadlockTimeout is NDB's own time after which an operation that waits counts as
	// deadlocked.
	deadlockTimeout = 1200 * time.Millisecond
	// deadlockTrips are added to it: a write goes from the coordinator through all
	// replicas and back three times (prepare, commit, complete), and what it waits for
	// has as far to go.
	deadlockTrips = 10
)

// deadlockTimeout is the cluster's own, with room for its longest round trip.
func (o options) deadlockTimeout(rtt time.Duration) time.Duration {
	if o.deadlock != 0 {
		return o.deadlock
	}
	return deadlockTimeout + deadlockTrips*rtt
}

// maxRow is how many bytes a row of NDB may have for its fields (30,000 since 8.0.18, its
// key and lengths taken off).
const maxRow = 29_000

// column is the type of a field: NDB keeps BLOBs in a table of their own, with a lock and a
// round trip more, so that fields are VARBINARY as far as a row of ten of them allows.
func column(size int) string {
	if 10*size > maxRow {
		return mysql.Blob(size)
	}
	return fmt.Sprintf("VARBINARY(%d)", max(size, 255))
}
