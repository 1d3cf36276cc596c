// Package overlay is what decides which links packets of a lab take. A node has one
// address, on its loopback device, whatever links it has; databases bind to that and
// never know:
//
//	direct  over the first link of a pair, which is the only way between the two
//	babel   over the path of the lowest round-trip time, measured all the time
//	tinc    as the mesh VPN of that name chooses
//
// An overlay that is not direct runs a daemon on every node. Each kind is a package
// below this one.
package overlay

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/install"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
)

// ErrNoRoute says that a node cannot reach another.
var ErrNoRoute = errors.New("no route")

// Overlay is a way of routing.
type Overlay interface {
	// Name is "babel" or "tinc".
	Name() string
	// Needs tells what the nodes' namespaces must have before it starts.
	Needs() Needs
	// Start starts it on every node and returns when every node has a way to every other
	// that the links allow. The daemons are processes of the nodes and end with them.
	Start(ctx context.Context, n Network) (Running, error)
}

// Needs of an overlay.
type Needs struct {
	IPv6 bool // link-local addresses on the devices
}

// Network is what an overlay works on.
type Network struct {
	Nodes []host.Host
	Links []Link
	// On is what the nodes' machine does for their network.
	On machine.Network
	// Measure is from within the nodes' networks.
	Measure machine.Measures
	Log     *slog.Logger
}

// Link is a link of the lab as an overlay sees it.
type Link struct {
	ID     string
	A, B   string // nodes
	Device string // at both ends
	// Latency is half the round trip at the lab's scale; in a lab without distance it is that
	// of the topology, which still distinguishes short links from long ones.
	Latency time.Duration
	// AddrA and AddrB are the ends' own, in a network of two. A device has its node's
	// address, too, and that first: so packets leave with it whatever link they take.
	AddrA, AddrB netip.Addr
}

// Running is an overlay at work. While it runs, a daemon that ends is started again.
type Running interface {
	// Ready returns nil when every node has a route to every other.
	Ready(ctx context.Context) error
	// Follow makes the daemons go by the links' latencies as they are now, where what they
	// hold a link to cost follows from them, and returns when every node has a way to every
	// other again.
	UpdateLatencies(ctx context.Context, links []Link) error
	// Restarts is how many daemons have ended by themselves and were started again.
	Restarts() int
	// Close stops looking after the daemons. They end with their nodes.
	Close() error
}

// Definition is what topologies, commands, tests and the documentation know of an overlay. It
// stands in the overlay's own folder, and one line of package kinds names it: all else
// follows.
type Definition struct {
	// Name is how topologies call it.
	Name string
	// Recipe installs its program.
	Recipe install.Recipe
	// Options makes its options, to be read from a topology.
	Options func() Options
	// Intervals are those of its options that the benchmark of routing has flags for.
	Intervals []Interval
	Docs      Docs
}

// Options are a pointer to a struct with the tags of package strict: what a topology has under
// the overlay's name.
type Options interface {
	// Mistakes are those that tags do not tell; their paths are the keys.
	Check() strict.Problems
	// New returns the overlay with an installation of the recipe.
	New(install.Installation) Overlay
}

// Interval is an option that is a duration.
type Interval struct{ Key, Usage string }

// Docs are what the documentation says of it.
type Docs struct {
	For   string // what it is chosen for: "for the path of the lowest round-trip time"
	Tunes string // what its options do: "tunes babeld."
	// Takes and Notices are its row in docs/routing.md: how packets go, and what it notices.
	Takes, Notices string
}
