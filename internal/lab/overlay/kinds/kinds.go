// Package kinds names every overlay that the laboratory has.
package kinds

import (
	"context"
	"fmt"
	"slices"

	"skerry/internal/install"
	"skerry/internal/lab/overlay"
	"skerry/internal/lab/overlay/babel"
	"skerry/internal/lab/overlay/tinc"
	"skerry/internal/topology"
)

// Registry is every overlay, in the order of lists.
func Registry() []overlay.About {
	return []overlay.About{
		babel.About,
		tinc.About,
	}
}

// Names are what topologies call them.
func Names() []string {
	var names []string
	for _, a := range Registry() {
		names = append(names, a.Name)
	}
	return names
}

// Recipes say how the programs of overlays are installed.
func Recipes() []install.Recipe {
	var recipes []install.Recipe
	for _, a := range Registry() {
		recipes = append(recipes, a.Recipe)
	}
	return recipes
}

// find is the overlay of a name.
func find(name string) (overlay.About, bool) {
	all := Registry()
	i := slices.IndexFunc(all, func(a overlay.About) bool { return a.Name == name })
	if i < 0 {
		return overlay.About{}, false
	}
	return all[i], true
}

// For returns the overlay that a topology asks for, with its program as it is installed; nil
// for direct. The error is Check's, or tells how to install it.
func For(ctx context.Context, o topology.Overlay) (overlay.Overlay, error) {
	if err := check(o).AsError(); err != nil {
		return nil, fmt.Errorf("the topology's overlay: %w", err)
	}
	a, ok := find(o.Kind)
	if !ok {
		return nil, nil
	}
	options, _ := read(a, o.Settings[a.Name]) // that Check found nothing in
	in, err := Program(ctx, o)
	if err != nil {
		return nil, err
	}
	return options.New(in), nil
}

// Program is what the overlay that a topology asks for runs on nodes, the zero value where it runs
// nothing.
func Program(ctx context.Context, o topology.Overlay) (install.Installation, error) {
	a, ok := find(o.Kind)
	if !ok {
		return install.Installation{}, nil
	}
	dir, err := install.DefaultDir()
	if err != nil {
		return install.Installation{}, err
	}
	in, err := install.Store{Dir: dir}.Find(ctx, a.Recipe, "")
	if err != nil {
		return in, fmt.Errorf("the topology's overlay: %w", err)
	}
	return in, nil
}
