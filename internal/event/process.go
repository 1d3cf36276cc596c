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

// nodeAction acts on nodes, one after the other.
type nodeAction struct {
	nodes []string
	text  string // format string for the nodes' names
	do    func(ctx context.Context, w *Testbed, node string, p *progress) error
	// undo reverts do; nil if there is nothing to revert. errState is ignored: another event has
	// restored the node already.
	undo func(ctx context.Context, w *Testbed, node string, p *progress) error
	// order sorts the nodes; nil keeps the given order.
	order func(ctx context.Context, w *Testbed, nodes []string) ([]string, error)

	done []string // nodes that do has changed
}

// newNodeAction returns nil if there are no nodes.
func newNodeAction(a nodeAction) action {
	if len(a.nodes) == 0 {
		return nil
	}
	return &a
}

func (a *nodeAction) targets() []string { return a.nodes }
func (a *nodeAction) what() string      { return fmt.Sprintf(a.text, joinNames(a.nodes, "nodes")) }

func (a *nodeAction) apply(ctx context.Context, w *Testbed, p *progress) error {
	nodes := a.nodes
	if a.order != nil {
		var err error
		if nodes, err = a.order(ctx, w, nodes); err != nil {
			return err
		}
	}
	for _, name := range nodes {
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
		if err := a.undo(ctx, w, name, p); err != nil && !errors.Is(err, errState) {
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

const (
	graceful = "graceful"
	abrupt   = "abrupt"
)

func parseManner(name string) database.Manner { return database.Manner(name == abrupt) }

var killKind = Kind{
	Name: "kill", Summary: "kills the database on nodes with SIGKILL; the nodes stay members. A revert restarts it on the same data.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Down},
	Docs: Docs{SectionNodes, []Row{{Examples: []string{`Seoul`, `{nodes: data, choose: random}`},
		Text: `SIGKILL to the database's processes. On revert, they restart on the same data`}}},
	Offers: []Offer{
		{ID: "kill", Title: "Kill the database", On: record.OnNodes, Targets: "nodes"},
	},
	HeldState: "down",
	newSpec:   func() kindSpec { return new(kill) },
}

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
	Name: "stop", Summary: "stops the database on nodes gracefully. A revert restarts it, as for kill.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Down},
	Docs: Docs{SectionNodes, []Row{{Examples: []string{`Seoul`},
		Text: `the database stops by its own procedure: drain, flush, SIGTERM`}}},
	HeldState: "down",
	newSpec:   func() kindSpec { return new(stop) },
}

type stop struct {
	NodeSelector `yaml:",inline"`
}

func (e *stop) check(s Layout, fail failure) { e.checkMembers(s, fail, "stopped") }

func (e *stop) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	nodes := e.NodeSelector.draw(s, turn, busy, r)
	return newNodeAction(nodeAction{nodes: nodes, text: "%s stopped", do: haltNode(graceful), undo: reviveNode})
}

func (*stop) checkDatabase(c databaseCheck, e Event, fail failure) {
	c.requireRestartIfReverted(e, fail)
}

var startKind = Kind{
	Name: "start", Summary: "restarts the database after kill or stop.",
	Effect:  record.Effect{On: record.OnNodes, Makes: record.Up, Settles: true},
	Docs:    Docs{SectionNodes, []Row{{Examples: []string{`Seoul`}, Text: `the processes that kill or stop ended start again`}}},
	newSpec: func() kindSpec { return new(start) },
}

type start struct {
	NodeSelector `yaml:",inline"`
}

func (e *start) check(s Layout, fail failure) { e.checkMembers(s, fail, "started") }

func (e *start) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	return newNodeAction(nodeAction{nodes: e.NodeSelector.draw(s, turn, busy, r), text: "%s started", do: reviveNode})
}

func (*start) checkDatabase(c databaseCheck, _ Event, fail failure) { c.requireRestart(fail) }

var restartKind = Kind{
	Name: "restart", Summary: "restarts the database on nodes, one after the other.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Changed, Settles: true},
	Docs: Docs{SectionNodes, []Row{{Examples: []string{`{nodes: data, manner: graceful}`},
		Text: `the nodes restart one after the other; each waits until the previous node serves`}}},
	newSpec: func() kindSpec { return new(Restart) },
}

// Restart stops and starts nodes, one after the other: each waits until the previous one serves.
type Restart struct {
	NodeSelector `yaml:",inline"`
	// Manner is how the nodes are stopped: graceful by the database's own procedure, abrupt by
	// SIGKILL.
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
		if err != nil && ctx.Err() != nil { // the trial has ended: start the node all the same
			return reviveNode(context.WithoutCancel(ctx), w, node, p)
		}
		return err
	}
	return newNodeAction(nodeAction{nodes: e.NodeSelector.draw(s, turn, busy, r), text: "%s restarted, " + e.Manner, do: restart})
}

func (*Restart) checkDatabase(c databaseCheck, _ Event, fail failure) { c.requireRestart(fail) }

var pauseKind = Kind{
	Name: "pause", Summary: "pauses every process of nodes (SIGSTOP); connections stay open.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Down},
	Docs: Docs{SectionNodes, []Row{{Examples: []string{`Seoul`},
		Text: `every process of the node pauses (SIGSTOP). The node goes silent, and its connections stay open`}}},
	Offers: []Offer{
		{ID: "pause", Title: "Pause all processes", On: record.OnNodes, Targets: "nodes"},
	},
	HeldState: "paused",
	newSpec:   func() kindSpec { return new(pause) },
}

// pause stops every process of a node, which looks to others like a stalled virtual machine.
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
	Name: "resume", Summary: "resumes the processes of paused nodes (SIGCONT).",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Up, Settles: true},
	Docs: Docs{SectionNodes, []Row{{Examples: []string{`Seoul`},
		Text: `every process of the node resumes (SIGCONT), whichever event paused it`}}},
	newSpec: func() kindSpec { return new(resume) },
}

type resume struct {
	NodeSelector `yaml:",inline"`
}

func (e *resume) check(s Layout, fail failure) { e.resolve(s, fail) }

func (e *resume) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	return newNodeAction(nodeAction{nodes: e.NodeSelector.draw(s, turn, busy, r), text: "%s resumed", do: resumeNode})
}

var clockSkewKind = Kind{
	Name: "clock_skew", Summary: "skews the clocks of nodes (unavailable).",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Changed},
	Docs: Docs{SectionResources, []Row{{
		Text: `unavailable. Linux has no wall clock per node: time namespaces shift monotonic clocks only. ` +
			`Skerry does not change the machine's clock`}}},
	newSpec: func() kindSpec { return new(ClockSkew) },
}

// ClockSkew sets the clocks of nodes wrong. It is unavailable: time namespaces shift only the
// monotonic clocks, and Skerry does not change the machine's clock. The key exists to explain this.
type ClockSkew struct {
	NodeSelector `yaml:",inline"`
	// By is the clock error.
	By unit.Duration `yaml:"by" json:"by"`
}

func (c *ClockSkew) check(_ Layout, fail failure) {
	fail("", "skew the clocks of real machines; latency and pause delay messages between nodes",
		"%v: Linux has no wall clock per node (time namespaces shift monotonic clocks only)", errUnavailable)
}

func (c *ClockSkew) draw(Layout, int, map[string]bool, *rand.Rand) action { return nil }
