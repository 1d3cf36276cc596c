package local

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"skerry/internal/base/advice"
	"skerry/internal/link"
	"skerry/internal/machine"
	"skerry/internal/machine/emulator"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/statedir"
)

// Link implements machine.Links.
func (p *part) Link(ctx context.Context, links []link.Spec) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	specs, err := p.resolveEnds(links)
	if err != nil {
		return err
	}
	if err := p.vacant(specs); err != nil {
		return err
	}
	if err := p.engine.Create(ctx, specs); err != nil {
		return fmt.Errorf("make links: %w", err)
	}
	p.record.Warnings = append(p.record.Warnings, emulator.Unmet(p.record.Engine, specs)...)
	return p.own(specs)
}

// Adopt implements machine.Links. Processes of nodes can be started from then on.
func (p *part) Adopt(ctx context.Context, links []link.Spec) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	kind, err := emulator.Find(p.record.Engine, p.machine.Engines)
	if err != nil {
		return err
	}
	specs, err := p.resolveEnds(links)
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
	return p.openNodes()
}

// resolveEnds returns links with the namespaces of their ends. The end of a link to another machine is in the namespace
// of the network between machines. The caller holds mu.
func (p *part) resolveEnds(links []link.Spec) ([]link.Spec, error) {
	specs := slices.Clone(links)
	for i := range specs {
		a, b := &specs[i].A, &specs[i].B
		a.Netns = p.netns(a.Node)
		switch {
		case a.Machine != "", b.Machine != "" && (b.Path == nil || p.record.Engine == emulator.Netem):
			return nil, fmt.Errorf("link %s from %s to %s: %w", specs[i].ID, a.Node, b.Node, machine.ErrElsewhere)
		case b.Path != nil:
			b.Netns = p.betweenSpace()
		default:
			b.Netns = p.netns(b.Node)
		}
	}
	return specs, nil
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

// Set implements machine.Links.
func (p *part) Set(ctx context.Context, changes []link.Change) error {
	if err := p.running().Set(ctx, changes); err != nil {
		return fmt.Errorf("change links: %w", err)
	}
	return nil
}

// Stats implements machine.Links.
func (p *part) Stats(ctx context.Context, ids ...string) ([]link.Stats, error) {
	return p.running().Stats(ctx, ids...)
}

// Lateness implements machine.Links.
func (p *part) Lateness(ctx context.Context, reset bool) (link.Lateness, error) {
	engine := p.running()
	if engine.Lateness == nil {
		return link.Lateness{}, nil
	}
	return engine.Lateness(ctx, reset)
}
