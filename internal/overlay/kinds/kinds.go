// Package kinds names every overlay that the laboratory has.
package kinds

import (
	"cmp"
	"context"
	"fmt"

	"skerry/internal/install"
	"skerry/internal/overlay"
	"skerry/internal/overlay/babel"
	"skerry/internal/overlay/tinc"
	"skerry/internal/topology"
)

// Recipes say how the programs of overlays are installed.
func Recipes() []install.Recipe { return []install.Recipe{babel.Recipe, tinc.Recipe} }

// For returns the overlay that a topology asks for, with its programs as they are
// installed; nil for direct.
func For(ctx context.Context, o topology.Overlay) (overlay.Overlay, error) {
	switch o.Kind {
	case topology.Babel:
		in, err := find(ctx, babel.Recipe)
		if err != nil {
			return nil, err
		}
		d := babel.Defaults()
		return babel.New(in, babel.Options{Hello: cmp.Or(o.Hello, d.Hello), Update: cmp.Or(o.Update, d.Update)}), nil
	case topology.Tinc:
		in, err := find(ctx, tinc.Recipe)
		if err != nil {
			return nil, err
		}
		d := tinc.Defaults()
		return tinc.New(in, tinc.Options{
			PingInterval: cmp.Or(o.PingInterval, d.PingInterval), PingTimeout: cmp.Or(o.PingTimeout, d.PingTimeout),
		}), nil
	}
	return nil, nil
}

func find(ctx context.Context, r install.Recipe) (install.Installation, error) {
	dir, err := install.DefaultDir()
	if err != nil {
		return install.Installation{}, err
	}
	in, err := install.Store{Dir: dir}.Find(ctx, r, "")
	if err != nil {
		return in, fmt.Errorf("the topology's overlay: %w", err)
	}
	return in, nil
}
