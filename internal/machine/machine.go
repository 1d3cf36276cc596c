// Package machine is what one machine does for labs: the nodes that stand on it with their
// namespaces, control groups, directories and processes, the devices and the ends of links,
// and the certainty that nothing of it is left behind. What is about a whole lab - who stands
// where, how far from whom, which way packets take - is decided by package lab, which tells
// every machine its part:
//
//	lab ── Part: nodes, links, devices, routes ──► machine ─► kernel
//	    ◄── Facts, what was sent, how late it was ──────────
//
// All that is asked and answered is plain data, which could travel as JSON: no thread, no path
// of the asking side, no file descriptor. What lasts is named: a part by its ID, a node by its
// name, a link by its ID. The one exception is Inside, for work that needs a thread within a
// node's network; only nodes of the machine that the asking process runs on have it.
//
// Package local is the implementation for the machine that this process runs on.
package machine

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"

	"skerry/internal/link"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// Errors that callers tell apart.
var (
	ErrExists   = errors.New("a lab of this name exists")
	ErrNotFound = errors.New("no such lab")
	ErrInUse    = errors.New("the lab belongs to a running command")
	ErrDamaged  = errors.New("the lab is damaged")
	ErrNoNode   = errors.New("no such node")
	// ErrElsewhere means that an end of a link is on a machine that cannot be reached.
	ErrElsewhere = errors.New("the other end of the link is on no machine that can be reached")
)

// Machine has parts of labs.
type Machine interface {
	// Prepare takes a lab's name on this machine, and gives the part its ID. Everything that
	// is made for it from here on is undone by Down or, when the owner dies first, by Sweep.
	// When it fails nothing is left. ErrExists when the name is taken.
	Prepare(ctx context.Context, a Ask) (Part, error)
	// Open finds a part that is up and that another process may have made; ErrNotFound when
	// there is none. Its links are not in hand before Adopt.
	Open(ctx context.Context, lab string) (Part, error)
	// List tells of all parts, dead ones included, by the names of their labs.
	List(ctx context.Context) ([]Found, error)
	// Sweep clears the parts whose owner died and returns their names. It needs no room on
	// the disk and touches nothing that no lab made.
	Sweep(ctx context.Context) ([]string, error)
	// Remove ends a part that another process made, damaged ones included. ErrInUse when
	// its owner lives.
	Remove(ctx context.Context, lab string) error
}

// Part is what a machine has of one lab. Its methods may be called from several goroutines.
type Part interface {
	// Facts are what the part is at this moment.
	Facts() Facts
	// Files are the machine's: what its kernel tells of it, beside what nodes have.
	Files() files.System
	// Members are what each machine has of the part.
	Members() []Member

	Nodes
	Between
	Links
	Network
	Measures
	Services

	// Keep says that the lab is up, and keeps what it is for Open and List. A lab without an
	// owner stays up from then on; one that is half made until then is swept.
	Keep(ctx context.Context, lab json.RawMessage) error
	// SetNote replaces what the lab says of itself that changes while it is up; Note reads
	// it. The note of a part that others may change is changed between Lock and Unlock.
	SetNote(ctx context.Context, note json.RawMessage) error
	Note(ctx context.Context) (json.RawMessage, error)
	// Lock keeps other processes from changing the part until Unlock; ErrInUse when it belongs
	// to one. The owner needs neither.
	Lock(ctx context.Context) error
	Unlock() error

	// Down ends the part: its processes, links, namespaces, control groups and directories.
	// It does all it can whatever fails, and may be called again.
	Down(ctx context.Context) error
	// Close lets go of the part without ending it.
	Close() error
	// Ended is closed when the process that moves packets has ended; nil where the kernel
	// moves them.
	Ended() <-chan struct{}
}

// Nodes are those of a part.
type Nodes interface {
	// Make makes the nodes, once, and starts what moves packets.
	Make(ctx context.Context, nodes []Node) error
	// Host returns a node; ErrNoNode when there is none of that name.
	Host(node string) (host.Host, error)
	// Contain returns where the processes of a container on a node run.
	Contain(c Container) (host.Host, error)
	// Name says what names the nodes' processes know, in their /etc/hosts, in place of those
	// before.
	Name(ctx context.Context, names []Named) error
	// Resolve has processes that start from now on ask a DNS server, port 53, for other names.
	Resolve(ctx context.Context, server netip.Addr) error
}

// Links are the ends of links on a part's nodes.
type Links interface {
	// Link creates links, all or none. The namespaces of the ends may be empty: the machine knows those of its nodes.
	Link(ctx context.Context, links []link.Spec) error
	// Adopt takes over links that another process created.
	Adopt(ctx context.Context, links []link.Spec) error
	// Set changes the qualities of links, all at one moment.
	Set(ctx context.Context, changes []link.Change) error
	// Stats returns the statistics of the named links, or of all links.
	Stats(ctx context.Context, ids ...string) ([]link.Stats, error)
	// Lateness tells how late packets were handed over, on all links together, since the last
	// reset. Known is false for an engine that cannot know.
	Lateness(ctx context.Context, reset bool) (link.Lateness, error)
}

// Network is what a part's nodes have of the network beside their links.
type Network interface {
	// Tunnel lays tunnels between devices of links. Both ends of each are given.
	Tunnel(ctx context.Context, ends []TunnelEnd) error
	// Address gives devices their addresses, in the order given.
	Address(ctx context.Context, devices []Device) error
	// Route gives nodes their routes.
	Route(ctx context.Context, routes []Route) error
	// Carrier sets the devices of a node down or up, as pulling out a cable does. With those
	// that are set up come the routes over them, which the kernel took away.
	Carrier(ctx context.Context, c Cable, up bool) error
	// Ways tells, for each address, the device by which a node's kernel sends packets there, ""
	// where it has no route.
	Ways(ctx context.Context, node string, to []netip.Addr) ([]string, error)
	// TUN makes a device that a program of a node reads packets from, and sends to it what is
	// for a network.
	TUN(ctx context.Context, t TUN) error
	// Listening tells whether a program listens on a TCP port of a node's address.
	Listening(ctx context.Context, node string, port int) (bool, error)
}
