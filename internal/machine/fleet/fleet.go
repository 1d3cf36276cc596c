// Package fleet is several machines as one: a lab's nodes are placed on them, and what is asked of
// the lab's part is asked of the machine that it is about. It keeps the contract of package
// machine.
//
//	lab ── Part ──► fleet ──┬── nodes a, b; halves of a~b, and of b~c ──► rack-1
//	                        └── node c; the other half of b~c ──────────► rack-2
//	                                       rack-1 ══ encrypted UDP ══ rack-2
package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"skerry/internal/base/advice"
	"skerry/internal/machine"
	"skerry/internal/machine/emulator"
)

// ErrPlace says that nodes are placed where they cannot be.
var ErrPlace = errors.New("no place for a node")

// Member is a machine of a fleet.
type Member struct {
	machine.Machine
	Name string
	// Addr is what other members reach it by.
	Addr netip.Addr
	// Whole says that the machine itself is the node that is placed on it.
	Whole bool
}

// Fleet is several machines.
type Fleet struct {
	members []Member // those that have nodes
	at      map[string]int
	plain   bool
}

var _ machine.Machine = (*Fleet)(nil)

// New makes one of machines that have nodes, as places say: the machine of each node, by names.
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
			return nil, fmt.Errorf("%w: %s is one node, and is to have %d", ErrPlace, m.Name, used)
		}
		if used > 0 {
			f.members = append(f.members, m)
		}
	}
	for node, name := range places {
		if _, ok := f.at[node]; !ok {
			return nil, fmt.Errorf("%w: %s is to be on %q, which is no machine", ErrPlace, node, name)
		}
	}
	if len(f.members) == 0 {
		return nil, fmt.Errorf("%w: there are no nodes", ErrPlace)
	}
	for i, m := range f.members {
		if len(f.members) > 1 && !m.Addr.IsValid() {
			return nil, advice.With(fmt.Errorf("%w: it is not known by which address others reach %s", ErrPlace, m.Name), "say so in the machines file: addr")
		}
		for _, other := range f.members[:i] {
			if other.Name == m.Name {
				return nil, fmt.Errorf("%w: two machines are called %s", ErrPlace, m.Name)
			}
		}
	}
	return f, nil
}

// errPublic says that machines are reached by an address that is not private.
var errPublic = errors.New("packets between machines are encrypted where an address is not private")

// Plain has packets cross between machines without being encrypted. Their addresses have to be private
// ones.
func (f *Fleet) Plain() error {
	for _, m := range f.members {
		if !f.One() && !machine.Private(m.Addr) {
			return advice.With(fmt.Errorf("%w: %s is reached by %s", errPublic, m.Name, m.Addr), "leave between: plain out, or give the machine a private addr")
		}
	}
	f.plain = true
	return nil
}

// Places are the machines of the nodes, by names.
func (f *Fleet) Places() map[string]string {
	places := make(map[string]string, len(f.at))
	for node, i := range f.at {
		places[node] = f.members[i].Name
	}
	return places
}

// One tells whether all nodes are on one machine.
func (f *Fleet) One() bool { return len(f.members) == 1 }

// named is an error with the machine's name before it, once.
func (f *Fleet) named(i int, err error) error {
	name := f.members[i].Name
	if err == nil || strings.HasPrefix(err.Error(), name+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// each asks all machines at the same time, and returns all errors.
func (f *Fleet) each(do func(i int) error) error {
	errs := make([]error, len(f.members))
	var all sync.WaitGroup
	for i := range f.members {
		all.Go(func() { errs[i] = f.named(i, do(i)) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Prepare implements machine.Machine.
func (f *Fleet) Prepare(ctx context.Context, a machine.Ask) (machine.Part, error) {
	if !f.One() || f.members[0].Whole {
		if a.Engine == emulator.Netem {
			err := fmt.Errorf("no link engine can run here: %s shapes links within one machine alone", emulator.Netem)
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
	p.parts, p.fleet = p.there()
	if p.fleet.members == nil {
		return nil, err
	}
	return nil, errors.Join(err, p.Down(context.WithoutCancel(ctx)))
}

// Open implements machine.Machine.
func (f *Fleet) Open(ctx context.Context, lab string) (machine.Part, error) {
	p := &part{fleet: f, parts: make([]machine.Part, len(f.members))}
	missing := make([]error, len(f.members))
	err := f.each(func(i int) (err error) {
		if p.parts[i], err = f.members[i].Open(ctx, lab); errors.Is(err, machine.ErrNotFound) {
			missing[i], err = f.named(i, err), nil
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
	p.parts, p.fleet = p.there()
	return nil, errors.Join(err, p.Close())
}

// Sweep implements machine.Machine.
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

// Remove implements machine.Machine.
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
