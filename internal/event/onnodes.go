package event

import (
	"context"
	"errors"
	"fmt"

	"skerry/internal/database"
)

// nodeAction is the action of events that do something to one node after the other.
type nodeAction struct {
	nodes []string
	text  string // the nodes' names are filled in
	do    func(ctx context.Context, w *Testbed, node string, p *progress) error
	// undo takes it back; nil is an event that has nothing to take back. A node that is
	// in the right state already, since another event saw to that, is no error.
	undo func(ctx context.Context, w *Testbed, node string, p *progress) error

	done []string // nodes that it was done to
}

// newNodeAction is nil where there is no node.
func newNodeAction(a nodeAction) action {
	if len(a.nodes) == 0 {
		return nil
	}
	return &a
}

func (a *nodeAction) targets() []string { return a.nodes }
func (a *nodeAction) what() string      { return fmt.Sprintf(a.text, joinNames(a.nodes, "nodes")) }

func (a *nodeAction) apply(ctx context.Context, w *Testbed, p *progress) error {
	for _, name := range a.nodes {
		if err := a.do(ctx, w, name, p); err != nil {
			return err
		}
		a.done = append(a.done, name)
	}
	return nil
}

func (a *nodeAction) revert(ctx context.Context, w *Testbed, p *progress) error {
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

func haltNode(manner string) func(context.Context, *Testbed, string, *progress) error {
	m := parseManner(manner)
	return func(ctx context.Context, w *Testbed, node string, _ *progress) error { return w.halt(ctx, node, m) }
}

func reviveNode(ctx context.Context, w *Testbed, node string, _ *progress) error {
	return w.revive(ctx, node)
}

// Names of the manners.
const (
	graceful = "graceful"
	abrupt   = "abrupt"
)

func parseManner(name string) database.Manner { return database.Manner(name == abrupt) }
