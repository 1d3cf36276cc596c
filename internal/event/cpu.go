package event

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// CPU keeps cores of nodes busy by a process of the node: within its quota, at the
// database's own priority.
type CPU struct {
	Nodes `yaml:",inline"`
	// Cores is how many of each node; 0.5 is half of one.
	Cores float64 `yaml:"cores" json:"cores" jsonschema:"default=1,exclusiveMinimum=0,maximum=1024"`
}

func (c *CPU) check(s Stage, fail failure) { c.Nodes.resolve(s, fail) }

func (c *CPU) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	return newHogs(c.Nodes.draw(s, turn, busy, r), fmt.Sprintf("%s cores of %%s busy", number(c.Cores)), "cpu", number(c.Cores))
}

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
