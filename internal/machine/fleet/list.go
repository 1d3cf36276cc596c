package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"skerry/internal/machine"
)

// badness orders the states of a lab's parts: the lab is in the worst of them.
var badness = map[machine.State]int{machine.Up: 0, machine.Owned: 1, machine.Damaged: 2, machine.Dead: 3}

// List implements machine.Machine.
func (f *Fleet) List(ctx context.Context) ([]machine.Found, error) {
	lists := make([][]machine.Found, len(f.members))
	if err := f.each(func(i int) (err error) {
		lists[i], err = f.members[i].List(ctx)
		return err
	}); err != nil {
		return nil, err
	}
	parts := map[string][]machine.Found{}
	on := map[string][]string{}
	for i, list := range lists {
		for _, x := range list {
			parts[x.Name] = append(parts[x.Name], f.told(i, x))
			on[x.Name] = append(on[x.Name], f.members[i].Name)
		}
	}
	var all []machine.Found
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		x := together(parts[name])
		for _, m := range f.members {
			if x.State != machine.Dead && !slices.Contains(on[name], m.Name) {
				x.State, x.Problem = machine.Damaged, m.Name+" has no part of it"
			}
		}
		all = append(all, x)
	}
	return all, nil
}

// told is what a machine found, with its name.
func (f *Fleet) told(i int, x machine.Found) machine.Found {
	if x.Problem != "" {
		x.Problem = fmt.Sprintf("%s: %s", f.members[i].Name, x.Problem)
	}
	x.Facts = f.of(i, x.Facts)
	return x
}

// together is a lab of several parts.
func together(parts []machine.Found) machine.Found {
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
	all.Facts = merged(facts)
	return all
}
