// Package machine is the interface between a lab and the machines that run its nodes. A machine
// makes namespaces, control groups, directories, processes, devices and ends of links, and removes
// all of them. Package lab decides placement, distances and routes, and gives each machine its part:
//
//	lab ── Part: nodes, links, devices, routes ──► machine ─► kernel
//	    ◄── Facts, what was sent, how late it was ──────────
//
// Requests and responses are plain data that can be encoded as JSON. They contain no threads, file
// descriptors or paths of the caller's machine. Parts and links are identified by ID, nodes by name.
// LocalHost is the only exception: it enters a node's network with a thread.
//
// Package local implements the machine that this process runs on.
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

// Errors that callers distinguish.
var (
	ErrExists   = errors.New("a lab of this name exists")
	ErrNotFound = errors.New("no such lab")
	ErrInUse    = errors.New("the lab belongs to a running command")
	ErrDamaged  = errors.New("the lab is damaged")
	ErrNoNode   = errors.New("no such node")
	// ErrElsewhere is returned if an end of a link is on an unreachable machine.
	ErrElsewhere = errors.New("the other end of the link is on an unreachable machine")
)

// Machine makes, finds and removes parts of labs.
type Machine interface {
	// Prepare reserves a lab's name on this machine and assigns the part's ID. Down removes
	// everything made for the part; if the owner dies first, Sweep does. A failed Prepare leaves
	// nothing behind. It returns ErrExists if the name is in use.
	Prepare(ctx context.Context, a PartSpec) (Part, error)
	// Open opens a part that is up, possibly made by another process. Its links cannot be changed
	// before AdoptLinks. It returns ErrNotFound if the lab does not exist.
	Open(ctx context.Context, lab string) (Part, error)
	// List returns all parts, including dead ones, sorted by lab name.
	List(ctx context.Context) ([]PartStatus, error)
	// Sweep removes the parts whose owner died and returns their names. It needs no free disk
	// space and changes nothing that was not made by a lab.
	Sweep(ctx context.Context) ([]string, error)
	// Remove ends a part made by another process, even a damaged one. It returns ErrInUse while
	// the owner lives.
	Remove(ctx context.Context, lab string) error
}

// Part is one machine's share of a lab. Its methods are safe for concurrent use.
type Part interface {
	// Facts returns the current state of the part.
	Facts() Facts
	// Files returns the machine's file system, including /proc and /sys.
	Files() files.System
	// Members returns the part on each machine.
	Members() []Member

	Nodes
	Underlay
	Links
	Network
	Measurer
	Services

	// Commit marks the lab as up and stores its description for Open and List. An unowned lab
	// stays up from then on. A lab that is not committed is swept.
	Commit(ctx context.Context, lab json.RawMessage) error
	// SetNote replaces the lab's mutable description; Note reads it. If other processes may
	// change the part, call SetNote between Lock and Unlock.
	SetNote(ctx context.Context, note json.RawMessage) error
	Note(ctx context.Context) (json.RawMessage, error)
	// Lock prevents other processes from changing the part until Unlock. It returns ErrInUse if
	// another process owns the part. The owner needs neither call.
	Lock(ctx context.Context) error
	Unlock() error

	// Down removes the part: processes, links, namespaces, control groups and directories. It
	// continues after failures and can be called again.
	Down(ctx context.Context) error
	// Close releases the part without ending it.
	Close() error
	// Ended is closed when the emulator process has ended. It is nil if the kernel moves packets.
	Ended() <-chan struct{}
}

// Nodes makes and finds the nodes of a part.
type Nodes interface {
	// MakeNodes makes all nodes and starts the link engine. It is called once.
	MakeNodes(ctx context.Context, nodes []NodeSpec) error
	// Host returns the node with this name, or ErrNoNode.
	Host(node string) (host.Host, error)
	// ContainerHost returns the host of a container's processes.
	ContainerHost(c Container) (host.Host, error)
	// SetNames replaces the entries of the nodes' /etc/hosts.
	SetNames(ctx context.Context, names []NameRecord) error
	// SetResolver sets the DNS server (port 53) of processes that start later.
	SetResolver(ctx context.Context, server netip.Addr) error
}

// Links makes and shapes the ends of links on a part's nodes.
type Links interface {
	// MakeLinks makes all given links, or none. The namespaces of the ends may be empty: the machine
	// knows those of its nodes.
	MakeLinks(ctx context.Context, links []link.Spec) error
	// AdoptLinks takes control of the links that another process made, without changing them.
	AdoptLinks(ctx context.Context, links []link.Spec) error
	// ShapeLinks changes the qualities of links, all at the same instant.
	ShapeLinks(ctx context.Context, changes []link.Change) error
	// LinkStats returns the statistics of the named links, or of all links.
	LinkStats(ctx context.Context, ids ...string) ([]link.Stats, error)
	// Lateness returns how late packets of all links were delivered since the last reset. Known
	// is false if the engine cannot measure it.
	Lateness(ctx context.Context, reset bool) (link.Lateness, error)
}

// Network configures the network of a part's nodes, except for the links themselves.
type Network interface {
	// MakeTunnels makes tunnels over links. The caller passes both ends of each tunnel.
	MakeTunnels(ctx context.Context, ends []TunnelEnd) error
	// SetAddresses assigns addresses to devices, in order.
	SetAddresses(ctx context.Context, devices []Device) error
	// AddRoutes adds routes to nodes.
	AddRoutes(ctx context.Context, routes []Route) error
	// SetCarrier sets devices of a node down or up, as unplugging a cable does. Setting a device
	// up also restores its routes, which the kernel removed.
	SetCarrier(ctx context.Context, c Cable, up bool) error
	// LookupRoutes returns the output device for each address, "" if the node has no route to it.
	LookupRoutes(ctx context.Context, node string, to []netip.Addr) ([]string, error)
	// MakeTUN makes a TUN device on a node and routes a network to it.
	MakeTUN(ctx context.Context, t TUN) error
	// IsListening reports whether a program listens on a TCP port of a node's address.
	IsListening(ctx context.Context, node string, port int) (bool, error)
}
