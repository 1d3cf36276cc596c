// Package database is what the laboratory asks of a distributed database: to be
// installed, to run as a cluster on a lab's nodes, to say by its own word when it is
// ready, and to let members join and leave. Each database is a package below this one.
package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"skerry/internal/load"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// Sentinel errors of clusters.
var (
	// ErrBusy says that another change is under way.
	ErrBusy = errors.New("another change of membership is under way")
	// ErrFixed says that a node cannot leave.
	ErrFixed = errors.New("the node cannot leave")
	// ErrNotMember says that a node is no member.
	ErrNotMember = errors.New("the node is no member")
	// ErrMember says that a node is a member already.
	ErrMember = errors.New("the node is a member already")
	// ErrUnsupported says that the database cannot do what was asked.
	ErrUnsupported = errors.New("the database cannot do this")
	// ErrNotReady says that a member or the cluster does not serve yet.
	ErrNotReady = errors.New("not ready")
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
	Scan bool `json:"scan"`
	// Tree is whether it is a directory tree: its clients are load.TreeClients.
	Tree        bool `json:"tree,omitempty"`
	Resize      bool `json:"resize"` // Join and Leave on a running cluster
	Replication bool `json:"replication"`
	// LeaveAbrupt is whether a member that was lost can be removed for good.
	LeaveAbrupt bool `json:"leave_abrupt"`
	// Restart is whether a member that was halted keeps its data and can be revived.
	Restart bool `json:"restart"`
	// MinNodes is the smallest cluster it forms, MaxNodes the largest (0: no limit).
	MinNodes int `json:"min_nodes"`
	MaxNodes int `json:"max_nodes,omitempty"`
	// Memory is what a member takes with default options, in bytes: what the machine
	// must have for each node.
	Memory int64 `json:"memory_bytes"`
}

// Anchored is a database of which some nodes cannot leave.
type Anchored interface {
	// Fixed maps the nodes that cannot leave to why ("the config servers are there").
	// Nodes are the names of the data nodes in topology order.
	Fixed(nodes []string, options Options) map[string]string
}

// Frail is a database that, as some options have it, cannot do without a member that was
// lost.
type Frail interface {
	// Frail says why no member can leave abruptly ("each shard has one member, which takes
	// its records with it"), "" where members can.
	Frail(nodes int, options Options) string
}

// Options are a database's own settings as an experiment gives them: scalar values.
type Options map[string]any

// Configurable is a database whose clients have properties of their own.
type Configurable interface {
	// Properties lists the properties that clients read ("redis.timeout"), "*" for any.
	Properties() []string
}

// ClientProperties lists the properties that clients of a database read, "*" for any.
func ClientProperties(db Database) []string {
	if c, ok := db.(Configurable); ok {
		return c.Properties()
	}
	return nil
}

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
	// RTT is the longest round trip between two data nodes that are linked, as the
	// experiment will have it; 0 where nobody knows. Timeouts are derived from it.
	RTT time.Duration
	// Contact returns the addresses of the service that leads to a port of any member, nil
	// where clients are told of the members themselves. It may be nil.
	Contact func(port int) []string
	Log     *slog.Logger
	// Progress tells a person what is going on ("forming the cluster").
	Progress func(string)
}

// ReportProgress tells a person and the log what a database is at.
func (e Env) ReportProgress(database, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if e.Log != nil {
		e.Log.Info(text, "database", database)
	}
	if e.Progress != nil {
		e.Progress(text)
	}
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
	// way: that for a member that serves, or, Abrupt, that for one that was lost (its
	// processes are killed first). Both return when the change is complete, with both
	// times. A change that is asked for while another is under way waits for it or is
	// refused with ErrBusy; a node that may not leave is refused with ErrFixed.
	Join(ctx context.Context, node host.Host) (Change, error)
	Leave(ctx context.Context, node host.Host, manner Manner) (Change, error)
	// Halt ends the processes of a member, which stays one: in the database's own way
	// (drain, flush, SIGTERM) or with SIGKILL. Failed is not closed by that. Revive
	// starts them again on the same data and returns when the database says that the
	// member serves.
	Halt(ctx context.Context, node host.Host, manner Manner) error
	Revive(ctx context.Context, node host.Host) error
	// Stop ends every process. Logs stay in the nodes' directories.
	Stop(ctx context.Context) error
	// Failed is closed when a member's process ended without being asked; Err says which.
	Failed() <-chan struct{}
	Err() error
	// Logs maps a name to a log file of a node.
	Logs() map[string]files.File
}

// Manner is how a member goes.
type Manner bool

// Manners.
const (
	Graceful Manner = false
	Abrupt   Manner = true
)

// String is the manner's name in files and messages.
func (m Manner) String() string {
	if m == Abrupt {
		return "abrupt"
	}
	return "graceful"
}

// Replicated is a cluster whose members' own copies can be read one by one.
type Replicated interface {
	// OpenMember returns a client that reads only what the member on that node holds:
	// reads and scans, without asking others. A key that the member does not hold by
	// design is load.ErrNotHeld.
	OpenMember(ctx context.Context, node string) (load.Client, error)
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
