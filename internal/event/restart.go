package event

import (
	"context"
	"math/rand/v2"

	"skerry/internal/record"
)

var restartKind = Kind{
	Name: "restart", Says: "stops and starts nodes, one after the other.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Changed, Settles: true},
	Docs:   Docs{SectionNodes, []Row{{Examples: []string{`{nodes: data, manner: graceful}`}, Says: `the nodes restart one after the other. Each waits until the one before serves`}}},
	spec:   func() spec { return new(Restart) },
}

// Restart stops and starts nodes, one after the other: the next when the one before serves.
type Restart struct {
	Nodes `yaml:",inline"`
	// Manner is how they are stopped: graceful in the database's own way, abrupt by SIGKILL.
	Manner string `yaml:"manner" json:"manner" jsonschema:"default=graceful,enum=graceful,enum=abrupt"`
}

func (e *Restart) check(s Stage, fail failure) { e.Nodes.members(s, fail, "restarted") }

func (e *Restart) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	stopping := halting(e.Manner)
	restart := func(ctx context.Context, w *World, node string, p *progress) error {
		if err := stopping(ctx, w, node, p); err != nil {
			return err
		}
		p.acceptNow()
		err := reviving(ctx, w, node, p)
		if err != nil && ctx.Err() != nil { // the trial ends meanwhile, and all is to be as it was
			return reviving(context.WithoutCancel(ctx), w, node, p)
		}
		return err
	}
	return newOnNodes(onNodes{nodes: e.Nodes.draw(s, turn, busy, r), text: "%s restarted, " + e.Manner, do: restart})
}

func (*Restart) need(c databaseCheck, _ Event, fail failure) { c.restarts(fail) }
