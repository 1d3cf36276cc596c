package local

import (
	"context"
	"errors"
	"fmt"

	"skerry/internal/base/advice"
	"skerry/internal/link"
	"skerry/internal/machine"
	"skerry/internal/machine/emulator"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/statedir"
)

// Link implements machine.Links.
func (p *part) Link(ctx context.Context, halves []link.Half) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	pairs, specs, err := p.join(halves)
	if err != nil {
		return err
	}
	if err := p.vacant(halves); err != nil {
		return err
	}
	if err := p.engine.Create(ctx, specs); err != nil {
		return fmt.Errorf("make links: %w", err)
	}
	p.record.Warnings = append(p.record.Warnings, emulator.Unmet(p.record.Engine, specs)...)
	p.know(pairs)
	return p.own(halves)
}

// Adopt implements machine.Links. Processes of nodes can be started from then on.
func (p *part) Adopt(ctx context.Context, halves []link.Half) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	kind, err := emulator.Find(p.record.Engine, p.machine.Engines)
	if err != nil {
		return err
	}
	pairs, specs, err := p.join(halves)
	if err != nil {
		return err
	}
	taken, err := journal.Open(p.place.File(statedir.Journal))
	if err != nil {
		return err
	}
	engine, err := kind.Connect(ctx, p.env(), specs)
	if err != nil {
		err = fmt.Errorf("%w: %s: %w", machine.ErrDamaged, p.record.Name, err)
		return errors.Join(advice.With(err, "end it with `skerry lab down %s`", p.record.Name), taken.Close())
	}
	p.journal, p.engine = taken, engine
	p.know(pairs)
	return p.openNodes()
}

// join puts halves of links together, for the engine. Those whose other half is on another machine
// leave by the network between, and have half of a pair.
func (p *part) join(halves []link.Half) ([]link.Pair, []link.Spec, error) {
	pairs, alone, err := link.PairHalves(halves)
	if err != nil {
		return nil, nil, err
	}
	for _, h := range alone {
		if h.Path == nil || p.record.Engine == emulator.Netem {
			return nil, nil, fmt.Errorf("link %s from %s to %s: %w", h.Link, h.Node, h.Peer.Node, machine.ErrElsewhere)
		}
	}
	specs := make([]link.Spec, len(pairs))
	for i, pair := range pairs {
		a, b := pair.A, pair.B
		specs[i] = link.Spec{
			ID: a.Link, AB: a.Sends, BA: b.Sends, Seed: a.Seed, MTU: a.MTU,
			A: link.End{Netns: p.netns(a.Node), Device: a.Device},
			B: link.End{Netns: p.netns(b.Node), Device: b.Device},
		}
	}
	for _, h := range alone {
		pairs, specs = append(pairs, link.Pair{A: h}), append(specs, p.leaving(h))
	}
	return pairs, specs, nil
}

// leaving is a link whose other half is on another machine. The two halves' random choices are
// not the same ones.
func (p *part) leaving(h link.Half) link.Spec {
	s := link.Spec{
		ID: h.Link, AB: h.Sends, Seed: h.Seed, MTU: h.MTU,
		A: link.End{Netns: p.netns(h.Node), Device: h.Device},
		B: link.End{Netns: p.betweenSpace(), Path: h.Path},
	}
	if h.Node > h.Peer.Node {
		s.Seed = ^s.Seed
	}
	return s
}

// netns is the path of a node's namespace. The caller holds mu.
func (p *part) netns(node string) string {
	for _, n := range p.record.Nodes {
		if n.Name == node {
			return n.Netns
		}
	}
	return p.place.Namespace(node) // which is not there
}

func (p *part) know(pairs []link.Pair) {
	if p.pairs == nil {
		p.pairs = make(map[string]link.Pair, len(pairs))
	}
	for _, pair := range pairs {
		p.pairs[pair.A.Link] = pair
	}
}

// Send implements machine.Links.
func (p *part) Send(ctx context.Context, changes []link.Sending) error {
	whole, err := p.changes(changes)
	if err != nil {
		return err
	}
	if err := p.running().Set(ctx, whole); err != nil {
		return fmt.Errorf("change links: %w", err)
	}
	return nil
}

// changes puts what ends are to send together by links, in the order in which these come.
func (p *part) changes(sendings []link.Sending) ([]link.Change, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := make(map[string]int, len(sendings))
	var changes []link.Change
	for i, s := range sendings {
		pair, ok := p.pairs[s.Link]
		if !ok || s.Node != pair.A.Node && s.Node != pair.B.Node {
			return nil, fmt.Errorf("%w: %s at %s", link.ErrUnknown, s.Link, s.Node)
		}
		if _, seen := at[s.Link]; !seen {
			at[s.Link] = len(changes)
			changes = append(changes, link.Change{ID: s.Link})
		}
		c := &changes[at[s.Link]]
		if s.Node == pair.A.Node {
			c.AB = &sendings[i].Sends
		} else {
			c.BA = &sendings[i].Sends
		}
	}
	return changes, nil
}

// Sent implements machine.Links.
func (p *part) Sent(ctx context.Context, links ...string) ([]link.Sent, error) {
	stats, err := p.running().Stats(ctx, links...)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	sent := make([]link.Sent, 0, 2*len(stats))
	for _, s := range stats {
		pair := p.pairs[s.ID]
		sent = append(sent, link.Sent{Link: s.ID, Node: pair.A.Node, Counters: s.AB, Path: s.Path})
		if pair.B.Node != "" {
			sent = append(sent, link.Sent{Link: s.ID, Node: pair.B.Node, Counters: s.BA})
		}
	}
	return sent, nil
}

// Lateness implements machine.Links.
func (p *part) Lateness(ctx context.Context, reset bool) (link.Lateness, error) {
	engine := p.running()
	if engine.Lateness == nil {
		return link.Lateness{}, nil
	}
	return engine.Lateness(ctx, reset)
}
