package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/machine"
)

// List describes the labs of a state directory.
func List(ctx context.Context, stateDir string) ([]Info, error) {
	m, err := here(stateDir)
	if err != nil {
		return nil, err
	}
	return ListOn(ctx, m)
}

// ListOn is List of the labs on any machine.
func ListOn(ctx context.Context, m machine.Machine) ([]Info, error) {
	found, err := m.List(ctx)
	if err != nil {
		return nil, err
	}
	infos := make([]Info, len(found))
	for i, f := range found {
		infos[i] = infoOf(f)
	}
	return infos, nil
}

// Find describes a lab by its name; with "" the one that is there, when there is one only.
func Find(ctx context.Context, stateDir, name string) (Info, error) {
	m, err := here(stateDir)
	if err != nil {
		return Info{}, err
	}
	infos, err := ListOn(ctx, m)
	if err != nil {
		return Info{}, err
	}
	found, err := Choose(infos, name)
	if errors.Is(err, ErrNotFound) {
		err = advise(ctx, m, err)
	}
	return found, err
}

// Choose is the lab of a name among labs, or with "" the one that is there; ErrNotFound when there is
// none.
func Choose(infos []Info, name string) (Info, error) {
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
	err := fmt.Errorf("%d labs are there", len(found))
	names := make([]string, len(found))
	for i, f := range found {
		names[i] = f.Name
	}
	return Info{}, advice.With(err, "name one of %s", strings.Join(names, ", "))
}

// infoOf is what a machine found, with what the lab says of itself as far as it can be read.
func infoOf(f machine.Found) Info {
	i := Info{
		Name: f.Name, State: f.State, Problem: f.Problem, OwnerPID: f.Owner, Processes: f.Processes,
		Holder: f.Facts.Holder, Engine: f.Facts.Engine, Why: f.Facts.Why,
		Warnings: f.Facts.Warnings, Settings: f.Facts.Settings,
	}
	var s state
	if parse(f.Facts.Lab, &s) == nil {
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
	if parse(f.Note, &links) == nil {
		i.Factor, i.Links = links.Factor, links.Links
	}
	return i
}
