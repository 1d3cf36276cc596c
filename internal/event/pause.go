package event

import (
	"context"
	"math/rand/v2"
)

// pause stops every process of nodes where it is: what a stalled virtual machine looks
// like to the others.
type pause Nodes

func (e *pause) check(s Stage, fail failure) { Nodes(*e).resolve(s, fail) }

func (e *pause) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	return newOnNodes(onNodes{
		nodes: Nodes(*e).draw(s, turn, busy, r), text: "%s paused",
		do:   func(ctx context.Context, w *World, node string, _ *progress) error { return w.pause(ctx, node) },
		undo: resuming,
	})
}

// resume lets the processes of nodes go on. It is not reverted.
type resume Nodes

func (e *resume) check(s Stage, fail failure) { Nodes(*e).resolve(s, fail) }

func (e *resume) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	return newOnNodes(onNodes{nodes: Nodes(*e).draw(s, turn, busy, r), text: "%s resumed", do: resuming})
}

func resuming(_ context.Context, w *World, node string, _ *progress) error { return w.resume(node) }

func (e *pause) limit(s Stage) int { return Nodes(*e).limit(s) }

func (e *resume) limit(s Stage) int { return Nodes(*e).limit(s) }
