package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"skerry/internal/advice"
)

// List describes the labs of a state directory.
func List(ctx context.Context, stateDir string) ([]Info, error) {
	s, err := openStore(stateDir)
	if err != nil {
		return nil, err
	}
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	infos := make([]Info, 0, len(names))
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		info, err := describe(s.lab(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("look at lab %s: %w", name, err)
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// Find describes a lab by its name; with "" the one that is there, when there is one only.
func Find(ctx context.Context, stateDir, name string) (Info, error) {
	s, err := openStore(stateDir)
	if err != nil {
		return Info{}, err
	}
	infos, err := List(ctx, stateDir)
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
	case len(found) == 0:
		return Info{}, notFound(s, name)
	}
	err = fmt.Errorf("%d labs are there", len(found))
	names := make([]string, len(found))
	for i, f := range found {
		names[i] = f.Name
	}
	return Info{}, advice.With(err, "name one of %s", strings.Join(names, ", "))
}

func describe(p place) (Info, error) {
	locked, err := isLocked(p.dir())
	if err != nil {
		return Info{}, err
	}
	r := inspect(p)
	info := Info{Name: p.name, State: StateDead, Problem: "left by a command that ended early"}
	switch {
	case r.state == nil && !locked:
		if err := r.doubt(); err != nil {
			info.Problem = r.unread.Error()
		}
		return info, nil
	case locked && (r.state == nil || r.state.Ephemeral):
		info.State, info.Problem = StateOwned, ""
		if r.plan != nil {
			info.OwnerPID = r.plan.Owner.PID
		}
	case r.alive():
		info.State, info.Problem = StateUp, ""
		if lack := r.damage(); lack != "" {
			info.State, info.Problem = StateDamaged, lack
		}
	}
	if r.state != nil {
		info.fill(r)
	}
	return info, nil
}

func (i *Info) fill(r remains) {
	s := r.state
	i.Created, i.Engine, i.Why, i.Topology = s.Created, s.Engine, s.Why, s.Topology.Name
	i.Warnings, i.Settings, i.Service = s.Warnings, s.Settings, s.Service
	if s.Holder != nil {
		i.Holder = &s.Holder.Process
	}
	for k, n := range s.Nodes {
		t := s.Topology.Nodes[k]
		info := NodeInfo{Name: n.Name, Site: t.Site, Role: t.Role, Addr: n.Addr, Dir: n.Dir, Netns: n.Netns}
		if n.Shown != "" {
			info.Netns = n.Shown
		}
		i.Nodes = append(i.Nodes, info)
	}
	var links linksState
	if readJSON(r.place.file(linksFile), &links) == nil { // without it the rest is still of use
		i.Factor, i.Links = links.Factor, links.Links
	}
	for _, p := range r.processes {
		if p.Name != emulator && p.Name != holder && r.sameBoot && p.Alive() {
			i.Processes++
		}
	}
}

// isLocked tells whether somebody holds a directory's lock.
func isLocked(dir string) (bool, error) {
	lock, err := lockDir(context.Background(), dir, false)
	if errors.Is(err, errLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, lock.Close()
}
