package event

import (
	"context"
	"math/rand/v2"

	"skerry/internal/database"
)

// Leave ends the membership of nodes, one after the other, by the database's own
// procedure. It is over when the database says so; without for it is a change for good,
// which the end of the trial does not take back.
type Leave struct {
	Nodes `yaml:",inline"`
	// Manner is how they go: graceful, or abrupt: killed first, and then removed by the
	// procedure for members that were lost.
	Manner string `yaml:"manner" json:"manner" jsonschema:"default=graceful,enum=graceful,enum=abrupt"`
}

func (e *Leave) check(s Stage, fail failure) { e.Nodes.members(s, fail, "removed") }

func (e *Leave) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	manner, text := mannerOf(e.Manner), "%s leaves"
	if manner == database.Abrupt {
		text = "%s is lost and removed"
	}
	return newOnNodes(onNodes{
		nodes: e.Nodes.draw(s, turn, busy, r), text: text, stays: true, undo: joining,
		do: func(ctx context.Context, w *World, node string, p *progress) error {
			return w.leave(ctx, node, manner, p)
		},
	})
}

// join makes nodes members, one after the other.
type join Nodes

func (e *join) check(s Stage, fail failure) { Nodes(*e).members(s, fail, "added") }

func (e *join) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	return newOnNodes(onNodes{
		nodes: Nodes(*e).draw(s, turn, busy, r), text: "%s joins", stays: true, do: joining,
		undo: func(ctx context.Context, w *World, node string, p *progress) error {
			return w.leave(ctx, node, database.Graceful, p)
		},
	})
}

func joining(ctx context.Context, w *World, node string, p *progress) error {
	return w.join(ctx, node, p)
}

func (e *join) limit(s Stage) int { return Nodes(*e).limit(s) }
