package event

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"skerry/internal/base/unit"
	"skerry/internal/database"
	"skerry/internal/record"
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

var killKind = Kind{
	Name: "kill", Summary: "ends the database's processes on nodes with SIGKILL; they stay members. Reverted, they are started again on the same data.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Down},
	Docs: Docs{SectionNodes, []Row{{Examples: []string{`Seoul`, `{nodes: data, choose: random}`},
		Text: `the database's processes end with SIGKILL. Taken back, they start again on the same data`}}},
	Offers: []Offer{
		{ID: "kill", Title: "Kill the database", On: record.OnNodes, Targets: "nodes"},
	},
	HeldState: "down",
	newSpec:   func() kindSpec { return new(kill) },
}

// kill ends the database's processes on nodes with SIGKILL.
type kill struct {
	NodeSelector `yaml:",inline"`
}

func (k *kill) check(s Layout, fail failure) { k.checkMembers(s, fail, "killed") }

func (k *kill) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	return newNodeAction(nodeAction{nodes: k.NodeSelector.draw(s, turn, busy, r), text: "%s killed", do: haltNode(abrupt), undo: reviveNode})
}

func (*kill) checkDatabase(c databaseCheck, e Event, fail failure) {
	c.requireRestartIfReverted(e, fail)
}

var stopKind = Kind{
	Name: "stop", Summary: "ends the database's processes on nodes in its own way; reverted as kill is.",
	Effect:    record.Effect{On: record.OnNodes, Makes: record.Down},
	Docs:      Docs{SectionNodes, []Row{{Examples: []string{`Seoul`}, Text: `the database's processes end in the database's own way: drained, flushed, SIGTERM`}}},
	HeldState: "down",
	newSpec:   func() kindSpec { return new(stop) },
}

// stop ends the database's processes on nodes in the database's own way.
type stop struct {
	NodeSelector `yaml:",inline"`
}

func (e *stop) check(s Layout, fail failure) { e.checkMembers(s, fail, "stopped") }

func (e *stop) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	return newNodeAction(nodeAction{nodes: e.NodeSelector.draw(s, turn, busy, r), text: "%s stopped", do: haltNode(graceful), undo: reviveNode})
}

func (*stop) checkDatabase(c databaseCheck, e Event, fail failure) {
	c.requireRestartIfReverted(e, fail)
}

var startKind = Kind{
	Name: "start", Summary: "starts what kill and stop have ended.",
	Effect:  record.Effect{On: record.OnNodes, Makes: record.Up, Settles: true},
	Docs:    Docs{SectionNodes, []Row{{Examples: []string{`Seoul`}, Text: `the processes that kill or stop has ended start again`}}},
	newSpec: func() kindSpec { return new(start) },
}

// start starts what kill and stop have ended.
type start struct {
	NodeSelector `yaml:",inline"`
}

func (e *start) check(s Layout, fail failure) { e.checkMembers(s, fail, "started") }

func (e *start) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	return newNodeAction(nodeAction{nodes: e.NodeSelector.draw(s, turn, busy, r), text: "%s started", do: reviveNode})
}

func (*start) checkDatabase(c databaseCheck, _ Event, fail failure) { c.requireRestart(fail) }

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

var resumeKind = Kind{
	Name: "resume", Summary: "lets the processes of nodes go on (SIGCONT), whatever paused them.",
	Effect:  record.Effect{On: record.OnNodes, Makes: record.Up, Settles: true},
	Docs:    Docs{SectionNodes, []Row{{Examples: []string{`Seoul`}, Text: `every process of the node goes on (SIGCONT), whatever paused it`}}},
	newSpec: func() kindSpec { return new(resume) },
}

// resume lets the processes of nodes go on.
type resume struct {
	NodeSelector `yaml:",inline"`
}

func (e *resume) check(s Layout, fail failure) { e.resolve(s, fail) }

func (e *resume) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	return newNodeAction(nodeAction{nodes: e.NodeSelector.draw(s, turn, busy, r), text: "%s resumed", do: resumeNode})
}

var clockSkewKind = Kind{
	Name: "clock_skew", Summary: "sets the clocks of nodes wrong.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Changed},
	Docs: Docs{SectionResources, []Row{{
		Text: `unavailable. Linux gives the processes of a node no time of day of their own: time namespaces shift the monotonic clocks alone. Skerry does ` +
			`not touch the machine's clock`}}},
	newSpec: func() kindSpec { return new(ClockSkew) },
}

// ClockSkew sets the clocks of nodes wrong. It is unavailable: the kernel gives processes
// no time of day of their own (time namespaces shift only the monotonic clocks), and the
// machine's is not to be touched. The key stands here so that who looks for it is told.
type ClockSkew struct {
	NodeSelector `yaml:",inline"`
	// By is how far their clocks are off.
	By unit.Duration `yaml:"by" json:"by"`
}

func (c *ClockSkew) check(_ Layout, fail failure) {
	fail("", "skew the clocks of real machines; latency and pause delay what nodes hear of each other",
		"%v: Linux gives the processes of a node no time of day of their own (time namespaces shift the monotonic clocks alone)", ErrUnavailable)
}

func (c *ClockSkew) draw(Layout, int, map[string]bool, *rand.Rand) action { return nil }
