package event

import (
	"context"
	"fmt"
)

// stressAction is a program on each of some nodes.
type stressAction struct {
	*programSet
	nodes []string
	text  string
	args  []string
}

func newStressAction(nodes []string, text string, args ...string) action {
	if len(nodes) == 0 {
		return nil
	}
	return &stressAction{programSet: newPrograms(), nodes: nodes, text: text, args: args}
}

func (h *stressAction) targets() []string { return h.nodes }
func (h *stressAction) what() string      { return fmt.Sprintf(h.text, joinNames(h.nodes, "nodes")) }

func (h *stressAction) apply(ctx context.Context, w *Testbed, _ *progress) error {
	for _, name := range h.nodes {
		if _, err := h.start(ctx, w, name, h.args...); err != nil {
			return err
		}
	}
	return nil
}

func (h *stressAction) revert(ctx context.Context, _ *Testbed, _ *progress) error { return h.stop(ctx) }
