package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/lab/service"
	"skerry/internal/machine"
	"skerry/internal/topology"
)

// List describes the labs of a state directory.
func List(ctx context.Context, stateDir string) ([]Info, error) {
	m, err := localMachine(stateDir)
	if err != nil {
		return nil, err
	}
	return ListOn(ctx, m)
}

// ListOn is List for the labs on any machine.
func ListOn(ctx context.Context, m machine.Machine) ([]Info, error) {
	found, err := m.List(ctx)
	if err != nil {
		return nil, err
	}
	infos := make([]Info, len(found))
	for i, f := range found {
		infos[i] = newInfo(f)
	}
	return infos, nil
}

// Find describes a lab by its name; with "" the only running lab.
func Find(ctx context.Context, stateDir, name string) (Info, error) {
	m, err := localMachine(stateDir)
	if err != nil {
		return Info{}, err
	}
	infos, err := ListOn(ctx, m)
	if err != nil {
		return Info{}, err
	}
	found, err := SelectLab(infos, name)
	if errors.Is(err, ErrNotFound) {
		err = adviseNotFound(ctx, m, err)
	}
	return found, err
}

// SelectLab returns the lab with a name, or with "" the only running one. The error is ErrNotFound if there is none.
func SelectLab(infos []Info, name string) (Info, error) {
	var found []Info
	for _, i := range infos {
		if i.Name == name || name == "" && i.State != StateDead {
			found = append(found, i)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && name == "":
		return Info{}, ErrNotFound
	case len(found) == 0:
		return Info{}, fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	err := fmt.Errorf("%d labs match", len(found))
	names := make([]string, len(found))
	for i, f := range found {
		names[i] = f.Name
	}
	return Info{}, advice.With(err, "give one of the names %s", strings.Join(names, ", "))
}

// newInfo describes a lab, including its own state if that is readable.
func newInfo(f machine.PartStatus) Info {
	i := Info{
		Name: f.Name, State: f.State, Problem: f.Problem, OwnerPID: f.Owner, Processes: f.Processes,
		Holder: f.Facts.Holder, Engine: f.Facts.Engine, Why: f.Facts.Why,
		Warnings: f.Facts.Warnings, Settings: f.Facts.Settings,
	}
	var s state
	if parseState(f.Facts.Lab, &s) == nil {
		i.Created, i.Topology, i.Service = s.Created, s.Topology.Name, s.Service
	}
	order := map[string]int{}
	for k, n := range s.Topology.Nodes {
		order[n.Name] = k
	}
	for _, n := range f.Facts.Nodes {
		node := NodeInfo{Name: n.Name, Addr: n.Addr, Dir: n.Dir, Netns: n.Netns, Machine: n.Machine}
		if k, known := order[n.Name]; known {
			node.Site, node.Role = s.Topology.Nodes[k].Site, s.Topology.Nodes[k].Role
		}
		i.Nodes = append(i.Nodes, node)
	}
	slices.SortStableFunc(i.Nodes, func(a, b NodeInfo) int { return cmp.Compare(order[a.Name], order[b.Name]) })
	var links linksState
	if parseState(f.Note, &links) == nil {
		i.Factor, i.Links = links.Factor, links.Links
	}
	return i
}

// Info describes a lab in a state directory.
type Info struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Problem is the fault of a damaged or dead lab.
	Problem string    `json:"problem,omitempty"`
	Created time.Time `json:"created,omitzero"`
	// OwnerPID is the command with which an owned lab ends.
	OwnerPID int `json:"owner_pid,omitempty"`
	// Holder is the process that holds the user namespace of a rootless lab.
	Holder   *machine.Process `json:"holder,omitempty"`
	Engine   string           `json:"engine,omitempty"`
	Why      string           `json:"engine_why,omitempty"`
	Factor   float64          `json:"scale,omitempty"`
	Topology string           `json:"topology,omitempty"`
	Nodes    []NodeInfo       `json:"nodes,omitempty"`
	Links    []Link           `json:"links,omitempty"`
	// Service is the access to the database, nil without a service.
	Service   *service.Plan     `json:"service,omitempty"`
	Processes int               `json:"processes"`
	Warnings  []string          `json:"warnings,omitempty"`
	Settings  map[string]string `json:"settings,omitempty"`
}

type NodeInfo struct {
	Name string        `json:"name"`
	Site string        `json:"site"`
	Role topology.Role `json:"role,omitempty"`
	Addr string        `json:"addr"`
	Dir  string        `json:"dir"`
	// Machine is its machine, "" for a lab on this machine only.
	Machine string `json:"machine,omitempty"`
	// Netns is the name for `ip netns`, or the path of the namespace.
	Netns string `json:"netns"`
}

// State of a lab in a state directory.
type State = machine.State

const (
	StateUp      = machine.Up
	StateOwned   = machine.Owned   // up or coming up, and owned by a running command
	StateDamaged = machine.Damaged // its emulator or its namespaces are gone
	StateDead    = machine.Dead    // left over; the next Sweep clears it
)
