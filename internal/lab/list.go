package lab

import (
	"context"
	"fmt"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/machine"
	"skerry/internal/machine/local"
)

// List describes the labs of a state directory.
func List(ctx context.Context, stateDir string) ([]Info, error) {
	m, err := local.New(local.Config{State: stateDir})
	if err != nil {
		return nil, err
	}
	return list(ctx, m)
}

func list(ctx context.Context, m machine.Machine) ([]Info, error) {
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
	m, err := local.New(local.Config{State: stateDir})
	if err != nil {
		return Info{}, err
	}
	infos, err := list(ctx, m)
	if err != nil {
		return Info{}, err
	}
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
		return Info{}, advise(ctx, m, ErrNotFound)
	case len(found) == 0:
		return Info{}, advise(ctx, m, fmt.Errorf("%w: %s", ErrNotFound, name))
	}
	err = fmt.Errorf("%d labs are there", len(found))
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
	for k, n := range f.Facts.Nodes {
		node := NodeInfo{Name: n.Name, Addr: n.Addr, Dir: n.Dir, Netns: n.Netns}
		if k < len(s.Topology.Nodes) {
			node.Site, node.Role = s.Topology.Nodes[k].Site, s.Topology.Nodes[k].Role
		}
		i.Nodes = append(i.Nodes, node)
	}
	var links linksState
	if parse(f.Note, &links) == nil {
		i.Factor, i.Links = links.Factor, links.Links
	}
	return i
}
