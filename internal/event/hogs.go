package event

import (
	"context"
	"fmt"
)

// hogs is a program on each of some nodes.
type hogs struct {
	*programs
	nodes []string
	text  string
	args  []string
}

func newHogs(nodes []string, text string, args ...string) action {
	if len(nodes) == 0 {
		return nil
	}
	return &hogs{programs: newPrograms(), nodes: nodes, text: text, args: args}
}

func (h *hogs) targets() []string { return h.nodes }
func (h *hogs) what() string      { return fmt.Sprintf(h.text, few(h.nodes, "nodes")) }

func (h *hogs) apply(ctx context.Context, w *World, _ *progress) error {
	for _, name := range h.nodes {
		if _, err := h.start(ctx, w, name, h.args...); err != nil {
			return err
		}
	}
	return nil
}

func (h *hogs) revert(ctx context.Context, _ *World, _ *progress) error { return h.stop(ctx) }
