// Package lab runs a topology: nodes with addresses, links between them, routing, and service networking. It decides
// what concerns the whole lab (addresses, latencies at a scale, routes), and package machine carries it out.
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

var (
	ErrExists   = machine.ErrExists
	ErrNotFound = machine.ErrNotFound
	ErrInUse    = machine.ErrInUse
	ErrDamaged  = machine.ErrDamaged
	ErrNoNode   = machine.ErrNoNode
	ErrNoLink   = errors.New("no such link")
	ErrInvalid  = errors.New("invalid lab")
)

// Lab is a running topology. Its methods are safe for concurrent use.
type Lab struct {
	part    machine.Part
	state   state
	owned   bool // ends with its process
	nodes   []host.Host
	byName  map[string]host.Host
	overlay overlay.Running     // nil without an overlay, and in processes that did not start it
	service *service.Controller // nil likewise
	// containers are the hosts of members in containers, by node.
	containers map[string]host.Host
	log        *slog.Logger

	mu    sync.Mutex // guards links and their changes
	links linksState
}

func (l *Lab) Name() string { return l.state.Name }

// Host returns a node's host; ErrNoNode if it does not exist.
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

// Node returns a node whose network this process can enter; ErrNoNode if it does not exist, machine.ErrRemoteHost if it is
// on another machine.
func (l *Lab) Node(name string) (machine.LocalHost, error) {
	h, err := l.Host(name)
	if err != nil {
		return nil, err
	}
	return machine.AsLocalHost(h)
}

// Hosts returns all hosts in the topology's order.
func (l *Lab) Hosts() []host.Host { return slices.Clone(l.nodes) }

// Files is the file system of the machine that runs the lab's processes.
func (l *Lab) Files() files.System { return l.part.Files() }

func (l *Lab) Topology() topology.Topology { return l.state.Topology }

// Engine returns the link engine and the reason for its selection.
func (l *Lab) Engine() (name, why string) {
	f := l.part.Facts()
	return f.Engine, f.Why
}

func (l *Lab) Machines() []machine.Member { return l.part.Members() }

// EmulatorDone is closed when the process that forwards packets ends; nil if the kernel forwards them.
func (l *Lab) EmulatorDone() <-chan struct{} { return l.part.Ended() }

// Warnings lists limits of this machine: CPU limits, real-time priority, large TCP buffers.
func (l *Lab) Warnings() []string { return l.part.Facts().Warnings }

// Settings returns the kernel settings of nodes.
func (l *Lab) Settings() map[string]string { return l.part.Facts().Settings }

// Lateness returns the lateness of the engine on all links together since the last reset.
func (l *Lab) Lateness(ctx context.Context, reset bool) (link.Lateness, error) {
	return l.part.Lateness(ctx, reset)
}

// Close releases a lab without ending it: its processes continue. An ephemeral lab is ended by Down instead.
func (l *Lab) Close() error {
	return errors.Join(l.closeService(), l.closeOverlay(), l.part.Close())
}

// Down ends the lab: its processes, links, namespaces, control groups and directories. It continues after failures, and
// may be called again.
func (l *Lab) Down(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	// First stop the supervisors, which would restart ended processes.
	return errors.Join(l.closeService(), l.closeOverlay(), l.part.Down(ctx))
}

// attachNodes opens the hosts of the lab's nodes.
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

// state is the saved description of a running lab.
type state struct {
	Name     string            `json:"name"`
	Created  time.Time         `json:"created"`
	Topology topology.Topology `json:"topology"`
	Seed     uint64            `json:"seed"`
	// Numbered is true if the devices of links have their own addresses.
	Numbered bool `json:"numbered,omitempty"`
	// Service is the access to the database, nil without a service.
	Service *service.Plan `json:"service,omitempty"`
}

// linksState is the part of a lab that changes while it runs.
type linksState struct {
	Factor float64 `json:"factor"`
	Links  []Link  `json:"links"`
}

func (l linksState) clone() linksState {
	l.Links = append([]Link(nil), l.Links...)
	return l
}

// saveState records that the lab is up, and its description.
func (l *Lab) saveState(ctx context.Context) error {
	whole, err := json.Marshal(l.state)
	if err != nil {
		return fmt.Errorf("encode lab state: %w", err)
	}
	if err := l.saveLinks(ctx, l.links); err != nil {
		return err
	}
	return l.part.Commit(ctx, whole)
}

// saveLinks saves the state of the links.
func (l *Lab) saveLinks(ctx context.Context, s linksState) error {
	note, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode lab state: %w", err)
	}
	return l.part.SetNote(ctx, note)
}

// loadLinks loads the state of the links.
func (l *Lab) loadLinks(ctx context.Context) error {
	note, err := l.part.Note(ctx)
	if err == nil {
		err = parseState(note, &l.links)
	}
	return err
}

func parseState(text json.RawMessage, v any) error {
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("decode lab state: %w", err)
	}
	return nil
}
