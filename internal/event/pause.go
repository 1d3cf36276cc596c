package event

import (
	"context"
	"math/rand/v2"

	"skerry/internal/record"
)

var pauseKind = Kind{
	Name: "pause", Summary: "stops every process of nodes where it is (SIGSTOP), its connections open.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Down},
	Docs:   Docs{SectionNodes, []Row{{Examples: []string{`Seoul`}, Text: `every process of the node stops where it is (SIGSTOP). The node goes silent with its connections open`}}},
	Offers: []Offer{
		{ID: "pause", Title: "Pause all processes", On: record.OnNodes, Targets: "nodes"},
	},
	HeldState: "paused",
	newSpec:   func() kindSpec { return new(pause) },
}

// pause stops every process of nodes where it is: what a stalled virtual machine looks
// like to the others.
type pause struct {
	NodeSelector `yaml:",inline"`
}

func (e *pause) check(s Layout, fail failure) { e.resolve(s, fail) }

func (e *pause) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	return newNodeAction(nodeAction{
		nodes: e.NodeSelector.draw(s, turn, busy, r), text: "%s paused",
		do:   func(ctx context.Context, w *Testbed, node string, _ *progress) error { return w.pause(ctx, node) },
		undo: resumeNode,
	})
}

func resumeNode(_ context.Context, w *Testbed, node string, _ *progress) error { return w.resume(node) }
