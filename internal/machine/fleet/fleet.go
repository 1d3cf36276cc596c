// Package fleet combines several machines into one machine.Machine. It sends each operation to the machine
// of the node concerned.
//
//	lab ── Part ──► fleet ──┬── nodes a, b; links a~b, b~c ──────► rack-1
//	                        └── node c; link b~c ─────────────► rack-2
//	                                       rack-1 ══ encrypted UDP ══ rack-2
package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"skerry/internal/base/advice"
	"skerry/internal/machine"
	"skerry/internal/machine/emulator"
)

var ErrPlacement = errors.New("invalid placement")

// Member is a machine of a fleet.
type Member struct {
	machine.Machine
	Name string
	// Addr is the address that other members use.
	Addr netip.Addr
	// Whole is set if the machine itself is the node placed on it.
	Whole bool
}

// Fleet implements machine.Machine on several machines.
type Fleet struct {
	members []Member // those that have nodes
	at      map[string]int
	plain   bool
}

var _ machine.Machine = (*Fleet)(nil)

// New returns the fleet of the machines that have nodes; places maps nodes to machine names.
func New(members []Member, places map[string]string) (*Fleet, error) {
	f := &Fleet{at: make(map[string]int, len(places))}
	for _, m := range members {
		used := 0
		for node, name := range places {
			if name == m.Name {
				f.at[node] = len(f.members)
				used++
			}
		}
		if m.Whole && used > 1 {
			return nil, fmt.Errorf("%w: machine %s is a single node, but has %d", ErrPlacement, m.Name, used)
		}
		if used > 0 {
			f.members = append(f.members, m)
		}
	}
	for node, name := range places {
		if _, ok := f.at[node]; !ok {
			return nil, fmt.Errorf("%w: node %s: unknown machine %q", ErrPlacement, node, name)
		}
	}
	if len(f.members) == 0 {
		return nil, fmt.Errorf("%w: no nodes", ErrPlacement)
	}
	for i, m := range f.members {
		if len(f.members) > 1 && !m.Addr.IsValid() {
			return nil, advice.With(fmt.Errorf("%w: address of %s is unknown", ErrPlacement, m.Name), "set addr in the machines file")
		}
		for _, other := range f.members[:i] {
			if other.Name == m.Name {
				return nil, fmt.Errorf("%w: duplicate machine %s", ErrPlacement, m.Name)
			}
		}
	}
	return f, nil
}

var errPublic = errors.New("unencrypted packets need private addresses")

// DisableEncryption sends packets between machines unencrypted. All addresses must be private.
func (f *Fleet) DisableEncryption() error {
	for _, m := range f.members {
		if !f.IsSingle() && !machine.IsPrivate(m.Addr) {
			return advice.With(fmt.Errorf("%w: %s is reached by %s", errPublic, m.Name, m.Addr), "leave between: plain out, or give the machine a private addr")
		}
	}
	f.plain = true
	return nil
}

// Placement maps nodes to machine names.
func (f *Fleet) Placement() map[string]string {
	places := make(map[string]string, len(f.at))
	for node, i := range f.at {
		places[node] = f.members[i].Name
	}
	return places
}

// IsSingle reports whether all nodes are on one machine.
func (f *Fleet) IsSingle() bool { return len(f.members) == 1 }

// nameError prefixes an error with the machine's name, once.
func (f *Fleet) nameError(i int, err error) error {
	name := f.members[i].Name
	if err == nil || strings.HasPrefix(err.Error(), name+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// each calls all machines concurrently and joins their errors.
func (f *Fleet) each(do func(i int) error) error {
	errs := make([]error, len(f.members))
	var all sync.WaitGroup
	for i := range f.members {
		all.Go(func() { errs[i] = f.nameError(i, do(i)) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (f *Fleet) Prepare(ctx context.Context, a machine.PartSpec) (machine.Part, error) {
	if !f.IsSingle() || f.members[0].Whole {
		if a.Engine == emulator.Netem {
			err := fmt.Errorf("no usable link engine: %s cannot shape links between machines", emulator.Netem)
			return nil, advice.With(err, "use engine: %s", emulator.Userspace)
		}
		a.Engine = emulator.Userspace
	}
	p := &part{fleet: f, parts: make([]machine.Part, len(f.members))}
	err := f.each(func(i int) (err error) {
		a := a
		a.Whole = f.members[i].Whole
		p.parts[i], err = f.members[i].Prepare(ctx, a)
		return err
	})
	if err == nil {
		return p, nil
	}
	p.parts, p.fleet = p.openParts()
	if p.fleet.members == nil {
		return nil, err
	}
	return nil, errors.Join(err, p.Down(context.WithoutCancel(ctx)))
}

func (f *Fleet) Open(ctx context.Context, lab string) (machine.Part, error) {
	p := &part{fleet: f, parts: make([]machine.Part, len(f.members))}
	missing := make([]error, len(f.members))
	err := f.each(func(i int) (err error) {
		if p.parts[i], err = f.members[i].Open(ctx, lab); errors.Is(err, machine.ErrNotFound) {
			missing[i], err = f.nameError(i, err), nil
		}
		return err
	})
	without := slices.DeleteFunc(missing, func(err error) bool { return err == nil })
	switch {
	case err == nil && len(without) == 0:
		return p, nil
	case err == nil && len(without) == len(f.members):
		err = fmt.Errorf("%w: %s", machine.ErrNotFound, lab)
	case err == nil:
		err = fmt.Errorf("%w: %s", machine.ErrDamaged, errors.Join(without...))
	}
	p.parts, p.fleet = p.openParts()
	return nil, errors.Join(err, p.Close())
}

func (f *Fleet) Sweep(ctx context.Context) ([]string, error) {
	swept := make([][]string, len(f.members))
	err := f.each(func(i int) (err error) {
		swept[i], err = f.members[i].Sweep(ctx)
		return err
	})
	all := slices.Concat(swept...)
	slices.Sort(all)
	return slices.Compact(all), err
}

func (f *Fleet) Remove(ctx context.Context, lab string) error {
	var mu sync.Mutex
	missing := 0
	err := f.each(func(i int) error {
		err := f.members[i].Remove(ctx, lab)
		if !errors.Is(err, machine.ErrNotFound) {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		missing++
		return nil
	})
	if err == nil && missing == len(f.members) {
		return fmt.Errorf("%w: %s", machine.ErrNotFound, lab)
	}
	return err
}

// badness orders states. A lab has the worst state of its parts.
var badness = map[machine.State]int{machine.Up: 0, machine.Owned: 1, machine.Damaged: 2, machine.Dead: 3}

func (f *Fleet) List(ctx context.Context) ([]machine.PartStatus, error) {
	lists := make([][]machine.PartStatus, len(f.members))
	if err := f.each(func(i int) (err error) {
		lists[i], err = f.members[i].List(ctx)
		return err
	}); err != nil {
		return nil, err
	}
	parts := map[string][]machine.PartStatus{}
	on := map[string][]string{}
	for i, list := range lists {
		for _, x := range list {
			parts[x.Name] = append(parts[x.Name], f.nameStatus(i, x))
			on[x.Name] = append(on[x.Name], f.members[i].Name)
		}
	}
	var all []machine.PartStatus
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		x := mergeStatus(parts[name])
		for _, m := range f.members {
			if x.State != machine.Dead && !slices.Contains(on[name], m.Name) {
				x.State, x.Problem = machine.Damaged, m.Name+" has no part of it"
			}
		}
		all = append(all, x)
	}
	return all, nil
}

func (f *Fleet) nameStatus(i int, x machine.PartStatus) machine.PartStatus {
	if x.Problem != "" {
		x.Problem = fmt.Sprintf("%s: %s", f.members[i].Name, x.Problem)
	}
	x.Facts = f.nameFacts(i, x.Facts)
	return x
}

// mergeStatus combines the statuses of a lab's parts.
func mergeStatus(parts []machine.PartStatus) machine.PartStatus {
	all := parts[0]
	facts := make([]machine.Facts, len(parts))
	all.Processes = 0
	for i, x := range parts {
		if badness[x.State] > badness[all.State] || all.Problem == "" {
			all.State, all.Problem = x.State, x.Problem
		}
		if len(all.Note) == 0 {
			all.Note = x.Note
		}
		all.Processes += x.Processes
		facts[i] = x.Facts
	}
	all.Facts = mergeFacts(facts)
	return all
}
