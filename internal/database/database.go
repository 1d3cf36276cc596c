// Package database is what the laboratory asks of a distributed database: to be
// installed, to run as a cluster on a lab's nodes, to say by its own word when it is
// ready, and to let members join and leave. Each database is a package below this one.
package database

import (
	"context"
	"log/slog"
	"time"

	"skerry/internal/host"
	"skerry/internal/load"
)

// Database is a kind of distributed database.
type Database interface {
	// Name is how experiments call it.
	Name() string
	// Capabilities tells what it can do, so that an experiment that asks for more
	// is refused before anything starts.
	Capabilities() Capabilities
	// Check validates options ("masters: 8") for a cluster of so many nodes.
	Check(nodes int, options Options) error
	// Find locates an installation: a path (from --from, "" for the cache, then PATH).
	Find(from string) (Installation, error)
	// Start forms a cluster on the nodes and returns when it serves. On an error
	// nothing of it runs any more, and the error holds the last lines of the log
	// of the node that failed.
	Start(ctx context.Context, env Env) (Cluster, error)
	// Open returns a client for one worker of the load driver. Properties are
	// those of Cluster.Properties, or a user's own -p values.
	Open(ctx context.Context, properties map[string]string) (load.Client, error)
}

// Capabilities of a database.
type Capabilities struct {
	Scan        bool `json:"scan"`
	Resize      bool `json:"resize"` // Join and Leave on a running cluster
	Replication bool `json:"replication"`
	// MinNodes is the smallest cluster it forms.
	MinNodes int `json:"min_nodes"`
}

// Options are a database's own settings as an experiment gives them: scalar values.
type Options map[string]any

// Installation is a database found on this machine.
type Installation struct {
	Database string `json:"database"`
	Version  string `json:"version"`
	// Dir is the root it was unpacked to, "" for the system's own.
	Dir string `json:"dir,omitempty"`
	// Programs maps a program's name to its path.
	Programs map[string]string `json:"programs"`
	// Env is added to its programs' environment (LD_LIBRARY_PATH).
	Env []string `json:"env,omitempty"`
}

// Env is what a cluster starts with.
type Env struct {
	Nodes        []host.Host // the data nodes, in topology order
	Control      host.Host   // where admin commands run: the client's node
	Installation Installation
	Options      Options
	Log          *slog.Logger
	// Progress tells a person what is going on ("forming the cluster").
	Progress func(string)
}

// Cluster is a running database.
type Cluster interface {
	// Properties tell a client how to reach it ("redis.hosts").
	Properties() map[string]string
	// Ready returns nil when every member says that the cluster serves.
	Ready(ctx context.Context) error
	// Members reports each member.
	Members(ctx context.Context) ([]Member, error)
	// Count counts the rows of the benchmark's table; a load ends only when it is right.
	Count(ctx context.Context) (int64, error)
	// Clear empties the benchmark's table.
	Clear(ctx context.Context) error
	// Join makes a node a member, Leave ends its membership in the database's own
	// way. Both return when the change is complete, with both times.
	Join(ctx context.Context, node host.Host) (Change, error)
	Leave(ctx context.Context, node host.Host) (Change, error)
	// Stop ends every process. Logs stay in the nodes' directories.
	Stop(ctx context.Context) error
	// Failed is closed when a member's process ended without being asked; Err says which.
	Failed() <-chan struct{}
	Err() error
	// Logs maps a name to the path of a log file.
	Logs() map[string]string
}

// Member is one node's part in a cluster.
type Member struct {
	Node  string  `json:"node"`
	State string  `json:"state"` // the database's own word
	Share float64 `json:"share"` // of the data that it owns, 0..1
	Rows  int64   `json:"rows"`
}

// Change is one change of membership: a request is accepted when the database's
// command reports success and complete when its own signal says that the change is
// really done.
type Change struct {
	Accepted time.Duration `json:"accepted_ns"` // since the request
	Complete time.Duration `json:"complete_ns"`
	Bytes    int64         `json:"bytes,omitempty"` // moved, where the database tells
}
