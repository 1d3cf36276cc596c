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
	"fmt"
	"log/slog"
	"os"
	"sync"

	"skerry/internal/advice"
	"skerry/internal/host"
	"skerry/internal/link"
	"skerry/internal/overlay"
	"skerry/internal/service"
	"skerry/internal/spell"
	"skerry/internal/topology"
	"skerry/internal/tunnel"
)

// Errors that callers tell apart.
var (
	ErrExists   = errors.New("a lab of this name exists")
	ErrNotFound = errors.New("no such lab")
	ErrInUse    = errors.New("the lab belongs to a running command")
	ErrDamaged  = errors.New("the lab is damaged")
	ErrNoNode   = errors.New("no such node")
	ErrNoLink   = errors.New("no such link")
	ErrInvalid  = errors.New("invalid lab")
)

// Link is a link of a lab that is up.
type Link struct {
	ID string `json:"id"`
	A  string `json:"a"` // node
	B  string `json:"b"` // node
	// AB and BA are the present qualities.
	AB link.Quality `json:"ab"`
	BA link.Quality `json:"ba"`
	// BaseAB and BaseBA are what Scale multiplies the latency of.
	BaseAB link.Quality `json:"base_ab"`
	BaseBA link.Quality `json:"base_ba"`
	// Device is the name of the network device at both ends, Tunnel that of the device
	// that encrypts what goes over it, "" where nothing does.
	Device string `json:"device"`
	Tunnel string `json:"tunnel,omitempty"`
}

// Lab is a topology that is up. Its methods may be called from several goroutines.
type Lab struct {
	place   place
	state   state
	journal *journal
	engine  running
	nodes   []*host.Node
	byName  map[string]*host.Node
	overlay overlay.Running  // nil without one, and in processes that did not start it
	tunnels *tunnel.Tunnels  // likewise
	service *service.Running // likewise
	// containers are the hosts of members that a service leads to, by node.
	containers map[string]*host.Container
	log        *slog.Logger
	// owner is the lock of the lab's directory, held by the process that made an
	// ephemeral lab, and by every process while it brings one up; else nil.
	owner *os.File

	mu    sync.Mutex // of what follows, and of what changes it
	links linksState
	gone  bool // it is down
}

// Name returns the lab's name.
func (l *Lab) Name() string { return l.state.Name }

// Host returns a node's host; ErrNoNode when there is none of that name.
func (l *Lab) Host(name string) (host.Host, error) {
	n, err := l.Node(name)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// Node returns a node; ErrNoNode when there is none of that name.
func (l *Lab) Node(name string) (*host.Node, error) {
	if n := l.byName[name]; n != nil {
		return n, nil
	}
	var names []string
	for _, n := range l.state.Nodes {
		names = append(names, n.Name)
	}
	err := fmt.Errorf("%w in lab %s: %s", ErrNoNode, l.state.Name, name)
	if near := spell.Nearest(name, names); near != "" {
		return nil, advice.With(err, "did you mean %s?", near)
	}
	return nil, advice.With(err, "see `skerry lab status`")
}

// Hosts returns all nodes' hosts in the topology's order.
func (l *Lab) Hosts() []host.Host {
	hosts := make([]host.Host, len(l.nodes))
	for i, n := range l.nodes {
		hosts[i] = n
	}
	return hosts
}

// Topology returns the topology the lab was made from.
func (l *Lab) Topology() topology.Topology { return l.state.Topology }

// Engine tells which engine makes the links and why that one.
func (l *Lab) Engine() (name, why string) { return l.state.Engine, l.state.Why }

// EmulatorPID is the process that moves packets, 0 where the kernel does.
func (l *Lab) EmulatorPID() int { return l.engine.pid }

// Ended is closed when the process that moves the packets has ended; nil where the
// kernel moves them.
func (l *Lab) Ended() <-chan struct{} { return l.engine.ended }

// Warnings lists what this machine could not give: CPU limits, real-time
// priority, big TCP buffers.
func (l *Lab) Warnings() []string { return l.state.Warnings }

// Stats returns what the engine counted on the links named, or on all.
func (l *Lab) Stats(ctx context.Context, ids ...string) ([]link.Stats, error) {
	return l.engine.Stats(ctx, ids...)
}

// Lateness tells how late the engine handed packets over, on all links together,
// since the last reset. Known is false for an engine that cannot know.
func (l *Lab) Lateness(ctx context.Context, reset bool) (link.Lateness, error) {
	if l.engine.lateness == nil {
		return link.Lateness{}, nil
	}
	return l.engine.lateness(ctx, reset)
}

// Close lets go of a lab without ending it: processes that it started go on. An
// ephemeral lab is ended by Down instead.
func (l *Lab) Close() error {
	errs := []error{l.closeService(), l.closeOverlay(), l.journal.close()}
	if l.engine.detach != nil {
		errs = append(errs, l.engine.detach())
	}
	if l.owner != nil {
		errs = append(errs, l.owner.Close())
		l.owner = nil
	}
	return errors.Join(errs...)
}
