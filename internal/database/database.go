// Package database is the interface between the laboratory and distributed databases:
// installation, a cluster on a lab's nodes, readiness, membership, and clients for the load
// driver. Each database is a package below this one.
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
	// ErrBusy means that another change is under way.
	ErrBusy = errors.New("another change of membership is under way")
	// ErrFixed means that a node cannot leave.
	ErrFixed = errors.New("the node cannot leave")
	// ErrNotMember means that a node is not a member.
	ErrNotMember = errors.New("the node is not a member")
	// ErrMember means that a node is already a member.
	ErrMember = errors.New("the node is a member already")
	// ErrUnsupported means that the database does not support the operation.
	ErrUnsupported = errors.New("the database cannot do this")
	// ErrNotReady means that a member or the cluster does not serve yet.
	ErrNotReady = errors.New("not ready")
)

// Database is a kind of distributed database.
type Database interface {
	// Name is the database's name in experiments.
	Name() string
	// Capabilities lists what the database supports. Experiments that need more are refused.
	Capabilities() Capabilities
	// Check validates options ("masters: 8") for a cluster of that many nodes.
	Check(nodes int, options Options) error
	// Find locates an installation at a path (--from), else in the cache, then PATH. An empty version is the default.
	Find(version, from string) (Installation, error)
	// Start forms a cluster and returns when it serves. After an error no process runs; the error holds log lines.
	Start(ctx context.Context, env Env) (Cluster, error)
	// Open returns a client for one worker with the properties of Cluster.Properties, or -p values.
	Open(ctx context.Context, properties map[string]string) (load.Client, error)
}

// Capabilities of a database.
type Capabilities struct {
	Scan bool `json:"scan"`
	// Tree means that the database is a directory tree and its clients are load.TreeClients.
	Tree        bool `json:"tree,omitempty"`
	Resize      bool `json:"resize"` // Join and Leave on a running cluster
	Replication bool `json:"replication"`
	// LeaveAbrupt means that a lost member can be removed for good.
	LeaveAbrupt bool `json:"leave_abrupt"`
	// LazyTables means that a table exists only while it has records: a client that connects creates nothing.
	LazyTables bool `json:"lazy_tables,omitempty"`
	// NoLogin means that clients have neither users nor TLS.
	NoLogin bool `json:"no_login,omitempty"`
	// NeedsUser means that a password needs a user: there is no default user.
	NeedsUser bool `json:"needs_user,omitempty"`
	// UserClient means that the user wrote the clients or the servers of their protocol. Whether they keep tables apart is
	// tested before a trial has a table on a cluster that Skerry did not start.
	UserClient bool `json:"user_client,omitempty"`
	// Restart means that a halted member keeps its data and can be revived.
	Restart bool `json:"restart"`
	// MinNodes is the smallest cluster, MaxNodes the largest (0: no limit).
	MinNodes int `json:"min_nodes"`
	MaxNodes int `json:"max_nodes,omitempty"`
	// Memory is what a member uses with default options, in bytes.
	Memory int64 `json:"memory_bytes"`
}

// Anchored is a database with nodes that cannot leave.
type Anchored interface {
	// Fixed maps each data node that cannot leave to the reason ("the config servers are there").
	Fixed(nodes []string, options Options) map[string]string
}

// Frail is a database that, with some options, cannot lose a member.
type Frail interface {
	// Frail returns why no member can leave abruptly, "" if members can.
	Frail(nodes int, options Options) string
}

// Scripted is a database that runs commands of the user.
type Scripted interface {
	// Commands lists the commands as written in the file, each after its key ("server.start: ...").
	Commands() []string
}

// Options are a database's own settings in an experiment: scalar values.
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
	// Dir is the root of the unpacked installation, "" for the system's.
	Dir string `json:"dir,omitempty"`
	// Programs maps the name of each program to its path.
	Programs map[string]string `json:"programs"`
	// Env is added to the environment of the programs (LD_LIBRARY_PATH).
	Env []string `json:"env,omitempty"`
}

// Env is the environment that a cluster starts in.
type Env struct {
	Nodes        []host.Host // the data nodes, in topology order
	Control      host.Host   // where admin commands run: the client's node
	Installation Installation
	Options      Options
	// RTT is the longest round trip between linked data nodes, 0 if unknown. Timeouts are derived from it.
	RTT time.Duration
	// Contact returns the addresses of the service in front of a port of all members, nil if there is none.
	Contact func(port int) []string
	// Scratch is a directory that outlives a killed process, for the name of the table on a cluster that Skerry did not
	// start; "" in a lab.
	Scratch string
	Log     *slog.Logger
	// Progress shows a line of progress to the user ("forming the cluster"). It may be nil.
	Progress func(string)
}

// ReportProgress writes a line of progress for the user and to the log.
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
	// Properties are what a client needs to connect ("redis.hosts").
	Properties() map[string]string
	// Ready returns nil if every member reports that the cluster serves.
	Ready(ctx context.Context) error
	// Members describes each member.
	Members(ctx context.Context) ([]Member, error)
	// Count counts the rows of the benchmark's table. A load ends only when the count is right.
	Count(ctx context.Context) (int64, error)
	// Clear empties the benchmark's table.
	Clear(ctx context.Context) error
	// Join makes a node a member. Leave ends its membership in the database's own way, Abrupt that
	// of a lost member, whose processes are killed first. Both return when the change is complete,
	// with both times. During another change they wait or return ErrBusy. A node that may not leave
	// is refused with ErrFixed.
	Join(ctx context.Context, node host.Host) (Change, error)
	Leave(ctx context.Context, node host.Host, manner Manner) (Change, error)
	// Halt ends the processes of a member, which stays a member: in the database's own way (drain,
	// flush, SIGTERM) or with SIGKILL. It does not close Failed. Revive starts the processes again
	// on the same data and returns when the database reports that the member serves.
	Halt(ctx context.Context, node host.Host, manner Manner) error
	Revive(ctx context.Context, node host.Host) error
	// Stop ends all processes. Logs stay in the nodes' directories.
	Stop(ctx context.Context) error
	// Failed is closed when a process of a member exits unexpectedly. Err then names it.
	Failed() <-chan struct{}
	Err() error
	// Logs maps a name to a log file on a node.
	Logs() map[string]files.File
}

// Manner is how a member leaves or halts.
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

// Replicated is a cluster whose members' copies can be read one by one.
type Replicated interface {
	// OpenMember returns a client that reads only the copy of the member on that node. Keys that the member does not
	// hold by design are load.ErrNotHere.
	OpenMember(ctx context.Context, node string) (load.Client, error)
}

// Member describes one node's part in a cluster.
type Member struct {
	Node  string  `json:"node"`
	State string  `json:"state"` // the database's own word
	Share float64 `json:"share"` // of the data that it owns, 0..1
	Rows  int64   `json:"rows"`
}

// Change is the timing of one change of membership. It is accepted when the database's command
// reports success, and complete when the database's own signal shows that it is done.
type Change struct {
	Accepted time.Duration `json:"accepted_ns"` // since the request
	Complete time.Duration `json:"complete_ns"`
	Bytes    int64         `json:"bytes,omitempty"` // moved, if the database reports it
}
