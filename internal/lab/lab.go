// Package lab brings a topology to life: nodes with an address each, the links between them,
// the way that packets take, and how clients find the database. It decides what is about the
// whole - who has which address, how far everybody is from whom at which scale, who routes -
// and has package machine make it.
package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/suggest"
	"skerry/internal/lab/overlay"
	"skerry/internal/lab/service"
	"skerry/internal/link"
	"skerry/internal/machine"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/internal/topology"
)

// Errors that callers tell apart.
var (
	ErrExists   = machine.ErrExists
	ErrNotFound = machine.ErrNotFound
	ErrInUse    = machine.ErrInUse
	ErrDamaged  = machine.ErrDamaged
	ErrNoNode   = machine.ErrNoNode
	ErrNoLink   = errors.New("no such link")
	ErrInvalid  = errors.New("invalid lab")
)

// Lab is a topology that is up. Its methods may be called from several goroutines.
type Lab struct {
	part    machine.Part
	state   state
	owned   bool // it ends with the process that made it
	nodes   []host.Host
	byName  map[string]host.Host
	overlay overlay.Running  // nil without one, and in processes that did not start it
	service *service.Running // likewise
	// containers are the hosts of members that a service leads to, by node.
	containers map[string]host.Host
	log        *slog.Logger

	mu    sync.Mutex // of what follows, and of what changes it
	links linksState
}

// Name returns the lab's name.
func (l *Lab) Name() string { return l.state.Name }

// Host returns a node's host; ErrNoNode when there is none of that name.
func (l *Lab) Host(name string) (host.Host, error) {
	if n := l.byName[name]; n != nil {
		return n, nil
	}
	var names []string
	for _, n := range l.nodes {
		names = append(names, n.Name())
	}
	err := fmt.Errorf("%w in lab %s: %s", ErrNoNode, l.state.Name, name)
	if near := suggest.Nearest(name, names); near != "" {
		return nil, advice.With(err, "did you mean %s?", near)
	}
	return nil, advice.With(err, "see `skerry lab status`")
}

// Node returns a node to work within the network of; ErrNoNode when there is none of that
// name, machine.ErrOutside where it is on another machine.
func (l *Lab) Node(name string) (machine.Inside, error) {
	h, err := l.Host(name)
	if err != nil {
		return nil, err
	}
	return machine.Enter(h)
}

// Hosts returns all nodes' hosts in the topology's order.
func (l *Lab) Hosts() []host.Host { return slices.Clone(l.nodes) }

// LocalHosts returns the nodes of this machine for who works on their networks.
func (l *Lab) LocalHosts() []host.Inside {
	var hosts []host.Inside
	for _, n := range l.nodes {
		if in, ok := n.(host.Inside); ok {
			hosts = append(hosts, in)
		}
	}
	return hosts
}

// Files are those of the machine that the lab's own processes run on.
func (l *Lab) Files() files.System { return l.part.Files() }

// Topology returns the topology the lab was made from.
func (l *Lab) Topology() topology.Topology { return l.state.Topology }

// Engine tells which engine makes the links and why that one.
func (l *Lab) Engine() (name, why string) {
	f := l.part.Facts()
	return f.Engine, f.Why
}

// Machines are the parts of the lab on each machine that it stands on.
func (l *Lab) Machines() []machine.Member { return l.part.Members() }

// EmulatorPID is the process that moves packets, 0 where the kernel does.
func (l *Lab) EmulatorPID() int { return l.part.Facts().Emulator }

// TunnelPID is the process that encrypts what goes over the links, 0 where nothing does, or
// the kernel, or a process that another command started.
func (l *Lab) TunnelPID() int { return l.part.Facts().Tunneller }

// EmulatorDone is closed when the process that moves the packets has ended; nil where the
// kernel moves them.
func (l *Lab) EmulatorDone() <-chan struct{} { return l.part.Ended() }

// Warnings lists what this machine could not give: CPU limits, real-time
// priority, big TCP buffers.
func (l *Lab) Warnings() []string { return l.part.Facts().Warnings }

// Settings returns the kernel settings that nodes have.
func (l *Lab) Settings() map[string]string { return l.part.Facts().Settings }

// Lateness tells how late the engine handed packets over, on all links together,
// since the last reset. Known is false for an engine that cannot know.
func (l *Lab) Lateness(ctx context.Context, reset bool) (link.Lateness, error) {
	return l.part.Lateness(ctx, reset)
}

// Close lets go of a lab without ending it: processes that it started go on. An
// ephemeral lab is ended by Down instead.
func (l *Lab) Close() error {
	return errors.Join(l.closeService(), l.closeOverlay(), l.part.Close())
}

// Down ends the lab: its processes, links, namespaces, control groups and
// directories. It does all it can whatever fails, and may be called again.
func (l *Lab) Down(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Nobody is to start again what ends now.
	return errors.Join(l.closeService(), l.closeOverlay(), l.part.Down(ctx))
}

// attachNodes finds the hosts of the lab's nodes.
func (l *Lab) attachNodes() error {
	l.nodes, l.byName = nil, make(map[string]host.Host, len(l.state.Topology.Nodes))
	for _, n := range l.state.Topology.Nodes {
		h, err := l.part.Host(n.Name)
		if err != nil {
			return err
		}
		l.nodes = append(l.nodes, h)
		l.byName[n.Name] = h
	}
	return l.attachContainers()
}

// state is what a lab says of itself when it is up, for commands that come later.
type state struct {
	Name     string            `json:"name"`
	Created  time.Time         `json:"created"`
	Topology topology.Topology `json:"topology"`
	Seed     uint64            `json:"seed"`
	// Numbered says that the devices of links have addresses of their own.
	Numbered bool `json:"numbered,omitempty"`
	// Service is how clients reach the database, nil without one.
	Service *service.Plan `json:"service,omitempty"`
}

// linksState is what changes of a lab while it is up.
type linksState struct {
	Factor float64 `json:"factor"`
	Links  []Link  `json:"links"`
}

func (l linksState) clone() linksState {
	l.Links = append([]Link(nil), l.Links...)
	return l
}

// saveState notes that the lab is up, and what it is.
func (l *Lab) saveState(ctx context.Context) error {
	whole, err := json.Marshal(l.state)
	if err != nil {
		return fmt.Errorf("write state of lab: %w", err)
	}
	if err := l.saveLinks(ctx, l.links); err != nil {
		return err
	}
	return l.part.Keep(ctx, whole)
}

// saveLinks writes how links are.
func (l *Lab) saveLinks(ctx context.Context, s linksState) error {
	note, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write state of lab: %w", err)
	}
	return l.part.SetNote(ctx, note)
}

// loadLinks reads how links are.
func (l *Lab) loadLinks(ctx context.Context) error {
	note, err := l.part.Note(ctx)
	if err == nil {
		err = parseState(note, &l.links)
	}
	return err
}

func parseState(text json.RawMessage, v any) error {
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("read state of lab: %w", err)
	}
	return nil
}
