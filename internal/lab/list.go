package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skerry/internal/advice"
	"skerry/internal/procfs"
	"skerry/internal/topology"
)

// Info describes a lab found in a state directory.
type Info struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Problem says what is wrong with a lab that is damaged or dead.
	Problem string    `json:"problem,omitempty"`
	Created time.Time `json:"created,omitzero"`
	// OwnerPID is the command that an owned lab ends with.
	OwnerPID int `json:"owner_pid,omitempty"`
	// Holder is the process that keeps the user namespace of a rootless lab.
	Holder    *procfs.Process   `json:"holder,omitempty"`
	Engine    string            `json:"engine,omitempty"`
	Why       string            `json:"engine_why,omitempty"`
	Factor    float64           `json:"scale,omitempty"`
	Topology  string            `json:"topology,omitempty"`
	Nodes     []NodeInfo        `json:"nodes,omitempty"`
	Links     []Link            `json:"links,omitempty"`
	Processes int               `json:"processes"`
	Warnings  []string          `json:"warnings,omitempty"`
	Settings  map[string]string `json:"settings,omitempty"`
}

// NodeInfo describes a node of a lab.
type NodeInfo struct {
	Name string        `json:"name"`
	Site string        `json:"site"`
	Role topology.Role `json:"role,omitempty"`
	Addr string        `json:"addr"`
	Dir  string        `json:"dir"`
	// Netns is the name that `ip netns` knows, or the path of the namespace.
	Netns string `json:"netns"`
}

// State of a lab in a state directory.
type State string

// States of labs.
const (
	StateUp      State = "up"
	StateOwned   State = "owned"   // up or coming up, and owned by a running command
	StateDamaged State = "damaged" // its emulator or its namespaces are gone
	StateDead    State = "dead"    // left over; the next Sweep clears it
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
	i.Warnings, i.Settings = s.Warnings, s.Settings
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

// Sweep clears the labs whose owner died, and returns their names. It needs no
// room on the disk and touches nothing that no lab made.
func Sweep(ctx context.Context, stateDir string) ([]string, error) {
	s, err := openStore(stateDir)
	if err != nil {
		return nil, err
	}
	swept, err := s.sweep(ctx)
	return append(swept, sweepData(DefaultDataDir())...), err
}

func (s store) sweep(ctx context.Context) (swept []string, err error) {
	sweepNew(s.dir)
	lock, err := s.lockExisting(ctx)
	if lock == nil {
		return nil, err
	}
	defer s.release(lock)
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range names {
		p := s.lab(name)
		owner, err := p.seize(ctx)
		if errors.Is(err, errLocked) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if r := inspect(p); !r.alive() {
			if err := r.clear(ctx); err != nil {
				errs = append(errs, err)
			} else {
				swept = append(swept, name)
			}
		}
		errs = append(errs, owner.Close())
	}
	return swept, errors.Join(errs...)
}

// sweepData removes the data directories of labs whose state directory is gone, as one in
// a memory file system is after the machine's restart.
func sweepData(dir string) (swept []string) {
	sweepNew(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		lab, err := os.Readlink(filepath.Join(path, madeFile))
		if err != nil || !e.IsDir() {
			continue
		}
		id, err := os.Readlink(filepath.Join(lab, idFile))
		if err == nil && id == e.Name() {
			continue // its lab's journal is there
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // not ours to see
		}
		if removeMarked(path, lab) == nil {
			swept = append(swept, e.Name())
		}
	}
	return swept
}
