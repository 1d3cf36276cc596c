package event

import (
	"context"
	"math/rand/v2"

	"skerry/internal/database"
)

// stop ends the database's processes on nodes in the database's own way.
type stop Nodes

func (e *stop) check(s Stage, fail failure) { Nodes(*e).members(s, fail, "stopped") }

func (e *stop) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	return newOnNodes(onNodes{nodes: Nodes(*e).draw(s, turn, busy, r), text: "%s stopped", do: halting(graceful), undo: reviving})
}

// start starts what kill and stop have ended. It is not reverted.
type start Nodes

func (e *start) check(s Stage, fail failure) { Nodes(*e).members(s, fail, "started") }

func (e *start) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	return newOnNodes(onNodes{nodes: Nodes(*e).draw(s, turn, busy, r), text: "%s started", do: reviving})
}

// Restart stops and starts nodes, one after the other: the next when the one before serves.
type Restart struct {
	Nodes `yaml:",inline"`
	// Manner is how they are stopped: graceful in the database's own way, abrupt by SIGKILL.
	Manner string `yaml:"manner" json:"manner" jsonschema:"default=graceful,enum=graceful,enum=abrupt"`
}

// Names of the manners.
const (
	graceful = "graceful"
	abrupt   = "abrupt"
)

func mannerOf(name string) database.Manner { return database.Manner(name == abrupt) }

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

func (e *stop) limit(s Stage) int { return Nodes(*e).limit(s) }

func (e *start) limit(s Stage) int { return Nodes(*e).limit(s) }
