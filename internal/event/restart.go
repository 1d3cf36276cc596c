package event

import (
	"context"
	"math/rand/v2"

	"skerry/internal/record"
)

var restartKind = Kind{
	Name: "restart", Summary: "stops and starts nodes, one after the other.",
	Effect:  record.Effect{On: record.OnNodes, Makes: record.Changed, Settles: true},
	Docs:    Docs{SectionNodes, []Row{{Examples: []string{`{nodes: data, manner: graceful}`}, Text: `the nodes restart one after the other. Each waits until the one before serves`}}},
	newSpec: func() kindSpec { return new(Restart) },
}

// Restart stops and starts nodes, one after the other: the next when the one before serves.
type Restart struct {
	NodeSelector `yaml:",inline"`
	// Manner is how they are stopped: graceful in the database's own way, abrupt by SIGKILL.
	Manner string `yaml:"manner" json:"manner" jsonschema:"default=graceful,enum=graceful,enum=abrupt"`
}

func (e *Restart) check(s Layout, fail failure) { e.NodeSelector.checkMembers(s, fail, "restarted") }

func (e *Restart) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	stopping := haltNode(e.Manner)
	restart := func(ctx context.Context, w *Testbed, node string, p *progress) error {
		if err := stopping(ctx, w, node, p); err != nil {
			return err
		}
		p.acceptNow()
		err := reviveNode(ctx, w, node, p)
		if err != nil && ctx.Err() != nil { // the trial ends meanwhile, and all is to be as it was
			return reviveNode(context.WithoutCancel(ctx), w, node, p)
		}
		return err
	}
	return newNodeAction(nodeAction{nodes: e.NodeSelector.draw(s, turn, busy, r), text: "%s restarted, " + e.Manner, do: restart})
}

func (*Restart) checkDatabase(c databaseCheck, _ Event, fail failure) { c.requireRestart(fail) }
