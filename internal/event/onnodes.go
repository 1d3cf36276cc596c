package event

import (
	"context"
	"errors"
	"fmt"

	"skerry/internal/database"
)

// onNodes is the action of events that do something to one node after the other.
type onNodes struct {
	nodes []string
	text  string // the nodes' names are filled in
	do    func(ctx context.Context, w *World, node string, p *progress) error
	// undo takes it back; nil is an event that has nothing to take back. A node that is
	// in the right state already, since another event saw to that, is no error.
	undo func(ctx context.Context, w *World, node string, p *progress) error

	done []string // nodes that it was done to
}

// newOnNodes is nil where there is no node.
func newOnNodes(a onNodes) action {
	if len(a.nodes) == 0 {
		return nil
	}
	return &a
}

func (a *onNodes) targets() []string { return a.nodes }
func (a *onNodes) what() string      { return fmt.Sprintf(a.text, few(a.nodes, "nodes")) }

func (a *onNodes) apply(ctx context.Context, w *World, p *progress) error {
	for _, name := range a.nodes {
		if err := a.do(ctx, w, name, p); err != nil {
			return err
		}
		a.done = append(a.done, name)
	}
	return nil
}

func (a *onNodes) revert(ctx context.Context, w *World, p *progress) error {
	if a.undo == nil {
		return nil
	}
	var errs []error
	for _, name := range a.done {
		if err := a.undo(ctx, w, name, p); err != nil && !errors.Is(err, ErrState) {
			errs = append(errs, err)
		}
	}
	a.done = nil
	return errors.Join(errs...)
}

func halting(manner string) func(context.Context, *World, string, *progress) error {
	m := mannerOf(manner)
	return func(ctx context.Context, w *World, node string, _ *progress) error { return w.halt(ctx, node, m) }
}

func reviving(ctx context.Context, w *World, node string, _ *progress) error {
	return w.revive(ctx, node)
}

// Names of the manners.
const (
	graceful = "graceful"
	abrupt   = "abrupt"
)

func mannerOf(name string) database.Manner { return database.Manner(name == abrupt) }
