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
	Start(ctx context.Context, n Net) (Running, error)
}

// Needs of an overlay.
type Needs struct {
	IPv6 bool // link-local addresses on the devices
}

// Net is what an overlay works on.
type Net struct {
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
	Follow(ctx context.Context, links []Link) error
	// Restarts is how many daemons have ended by themselves and were started again.
	Restarts() int
	// Close stops looking after the daemons. They end with their nodes.
	Close() error
}
