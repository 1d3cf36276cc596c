// Package overlay routes packets between the nodes of a lab. A node has one address, on its loopback device,
// independent of its links. Databases bind to this address:
//
//	direct  the first link of a pair, which is the only path between the two nodes
//	babel   the path of the lowest round-trip time, measured continuously
//	tinc    the path that the mesh VPN of that name chooses
//
// Overlays other than direct run a daemon on every node, and have a package each below this one.
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

// ErrNoRoute means that a node cannot reach another.
var ErrNoRoute = errors.New("no route")

// Overlay is a routing method.
type Overlay interface {
	Name() string
	// Needs lists requirements on the nodes' namespaces.
	Needs() Requirements
	// Start starts the overlay on every node. It returns when every node has a route to every other node that the links
	// allow. The daemons end with their nodes.
	Start(ctx context.Context, n Environment) (Running, error)
}

type Requirements struct {
	IPv6 bool // link-local addresses on the devices
}

// Environment holds the nodes and links of a lab for its overlay.
type Environment struct {
	Nodes []host.Host
	Links []Link
	// On configures the nodes' networks.
	On machine.Network
	// Measure measures from within the nodes' networks.
	Measure machine.Measurer
	Log     *slog.Logger
}

// Link is a link of the lab for an overlay.
type Link struct {
	ID     string
	A, B   string // nodes
	Device string // at both ends
	// Latency is half the round trip at the lab's scale; at scale 0 it is that of the topology, which still
	// distinguishes short links from long ones.
	Latency time.Duration
	// AddrA and AddrB are the addresses of the ends, in a network of two. A device has its node's address first, so
	// that packets have that source address on every link.
	AddrA, AddrB netip.Addr
}

// Running is a running overlay. It restarts daemons that end.
type Running interface {
	// Ready returns nil if every node has a route to every other node.
	Ready(ctx context.Context) error
	// UpdateLatencies applies changed latencies if the costs of links depend on them. It returns when every node has a
	// route to every other node again.
	UpdateLatencies(ctx context.Context, links []Link) error
	// Restarts is the number of daemons that ended and were restarted.
	Restarts() int
	// Close stops the supervision of the daemons, which end with their nodes.
	Close() error
}

// Definition registers an overlay: its name, installation, options and documentation.
type Definition struct {
	// Name is the value in topologies.
	Name string
	// Recipe installs the program.
	Recipe install.Recipe
	// Options returns empty options for decoding.
	Options func() Options
	Docs    Docs
}

// Options is a pointer to a struct with tags of package strict: the topology's mapping under the overlay's name.
type Options interface {
	// Check returns mistakes that tags do not express; paths are keys.
	Check() strict.Problems
	// New returns the overlay with an installation of the recipe.
	New(install.Installation) Overlay
}

// Docs are texts of the documentation.
type Docs struct {
	For   string // purpose: "for the path of the lowest round-trip time"
	Tunes string // effect of the options: "tunes babeld."
	// Takes and Notices are its row in docs/routing.md.
	Takes, Notices string
}
