// Package lab brings a topology to life on this machine: a network namespace, a
// control group and a directory for each node, an address for each node, and the
// links between them made by a link engine.
//
// Whatever a lab makes is written to a journal before it is made, so that Sweep
// can clear what a killed process, a crash or a full disk left, and nothing else.
// The machine's own network namespace gets no device, address, route or rule.
package lab

import (
	"context"
	"errors"
	"log/slog"

	"skerry/internal/host"
	"skerry/internal/link"
	"skerry/internal/topology"
)

// Errors that callers tell apart.
var (
	ErrExists   = errors.New("a lab of this name exists")
	ErrNotFound = errors.New("no such lab")
	ErrInUse    = errors.New("the lab belongs to a running command")
	ErrDamaged  = errors.New("the lab is damaged")
	ErrNoNode   = errors.New("no such node")
	ErrNoLink   = errors.New("no such link")
)

// Config says what lab to make.
type Config struct {
	// Name is unique among the labs of a state directory: lower-case letters,
	// digits and hyphens, at most 40 bytes, beginning with a letter.
	Name     string
	Topology topology.Topology
	// Engine is "netem", "userspace", or "auto" (also ""): netem where the kernel has it.
	Engine string
	// StateDir keeps the journals of labs; default DefaultStateDir.
	StateDir string
	// DataDir gets the directories of nodes, so it should be on a disk with room
	// for databases; default DefaultDataDir.
	DataDir string
	// Exe is the skerry program that agents are started from.
	Exe string
	// Scale multiplies every latency of the topology; 0 means 1.
	Scale float64
	// Ephemeral labs end with the process that made them: when it dies without
	// Down, the next Sweep clears them.
	Ephemeral bool
	// Log gets what is done, at level debug; default none.
	Log *slog.Logger
	// Progress, when set, is told how far Up is; called from one goroutine.
	Progress func(stage string, done, total int)
}

// Link is a link of a lab that is up.
type Link struct {
	ID string `json:"id"`
	A  string `json:"a"` // node
	B  string `json:"b"` // node
	// AB and BA are the present qualities.
	AB link.Quality `json:"ab"`
	BA link.Quality `json:"ba"`
	// BaseAB and BaseBA are the one-way latencies at factor 1.
	BaseAB link.Quality `json:"base_ab"`
	BaseBA link.Quality `json:"base_ba"`
	// Device is the name of the network device at both ends.
	Device string `json:"device"`
}

// Lab is a topology that is up.
type Lab struct{}

// Up makes a lab. When it fails or ctx ends, everything made is undone.
func Up(ctx context.Context, c Config) (*Lab, error) { return nil, errors.ErrUnsupported }

// Attach opens a lab that another process made.
func Attach(ctx context.Context, stateDir, name string) (*Lab, error) {
	return nil, errors.ErrUnsupported
}

// Name returns the lab's name.
func (l *Lab) Name() string { return "" }

// Host returns a node's host; ErrNoNode when there is none of that name.
func (l *Lab) Host(name string) (host.Host, error) { return nil, ErrNoNode }

// Hosts returns all nodes' hosts in the topology's order.
func (l *Lab) Hosts() []host.Host { return nil }

// Topology returns the topology the lab was made from.
func (l *Lab) Topology() topology.Topology { return topology.Topology{} }

// Links returns the links with their present qualities, in the topology's order.
func (l *Lab) Links() []Link { return nil }

// Set replaces the quality of links, all at one moment.
func (l *Lab) Set(ctx context.Context, changes []link.Change) error { return errors.ErrUnsupported }

// Scale makes every link's latency its base times factor. A latency that Set gave
// counts as scaled by the factor in force then.
func (l *Lab) Scale(ctx context.Context, factor float64) error { return errors.ErrUnsupported }

// Factor is what Scale was last given.
func (l *Lab) Factor() float64 { return 1 }

// Stats returns what the engine counted on the links named, or on all.
func (l *Lab) Stats(ctx context.Context, ids ...string) ([]link.Stats, error) {
	return nil, errors.ErrUnsupported
}

// Lateness tells how late the engine handed packets over, on all links together,
// since the last reset. Known is false for an engine that cannot know.
func (l *Lab) Lateness(ctx context.Context, reset bool) (link.Lateness, error) {
	return link.Lateness{}, errors.ErrUnsupported
}

// Engine tells which engine makes the links and why that one.
func (l *Lab) Engine() (name, why string) { return "", "" }

// Warnings lists what this machine could not give: CPU limits, real-time
// priority, big TCP buffers.
func (l *Lab) Warnings() []string { return nil }

// Settings are the kernel settings that the namespaces have, by sysctl name.
func (l *Lab) Settings() map[string]string { return nil }

// Down ends the lab: its processes, links, namespaces, control groups and
// directories. It does all it can whatever fails, and may be called again.
func (l *Lab) Down(ctx context.Context) error { return errors.ErrUnsupported }

// Close lets go of a lab without ending it. An ephemeral lab must be ended by Down.
func (l *Lab) Close() error { return nil }

// Info describes a lab found in a state directory.
type Info struct {
	Name  string `json:"name"`
	State State  `json:"state"`
}

// State of a lab in a state directory.
type State string

// States of labs.
const (
	StateUp      State = "up"
	StateOwned   State = "owned"   // up or coming up, and owned by a running command
	StateDamaged State = "damaged" // its emulator or holder is gone
	StateDead    State = "dead"    // left over; the next Sweep clears it
)

// List describes the labs of a state directory.
func List(ctx context.Context, stateDir string) ([]Info, error) { return nil, errors.ErrUnsupported }

// Sweep clears the labs whose owner died, and returns their names. It needs no
// room on the disk and touches nothing that no lab made.
func Sweep(ctx context.Context, stateDir string) ([]string, error) { return nil, errors.ErrUnsupported }

// DefaultStateDir is $SKERRY_STATE, else /run/skerry for root and
// $XDG_RUNTIME_DIR/skerry for others.
func DefaultStateDir() string { return "" }

// DefaultDataDir is $SKERRY_DATA, else /var/tmp/skerry for root and
// $XDG_CACHE_HOME/skerry for others.
func DefaultDataDir() string { return "" }
