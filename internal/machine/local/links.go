package local

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"skerry/internal/base/advice"
	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/machine"
	"skerry/internal/machine/emulator"
	"skerry/internal/machine/host"
	"skerry/internal/machine/journal"
)

func (p *part) MakeLinks(ctx context.Context, links []link.Spec) error {
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

// AdoptLinks implements machine.Links. Afterwards, processes can be started on nodes.
func (p *part) AdoptLinks(ctx context.Context, links []link.Spec) error {
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
	taken, err := journal.Open(p.place.Path(journal.JournalFile))
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

// resolveEnds returns links with the namespaces of their ends. A link to another machine ends in the underlay's namespace.
// The caller holds mu.
func (p *part) resolveEnds(links []link.Spec) ([]link.Spec, error) {
	specs := slices.Clone(links)
	for i := range specs {
		a, b := &specs[i].A, &specs[i].B
		a.Netns = p.netns(a.Node)
		switch {
		case a.Machine != "", b.Machine != "" && (b.Path == nil || p.record.Engine == emulator.Netem):
			return nil, fmt.Errorf("link %s from %s to %s: %w", specs[i].ID, a.Node, b.Node, machine.ErrElsewhere)
		case b.Path != nil:
			b.Netns = p.underlayNetns()
		default:
			b.Netns = p.netns(b.Node)
		}
	}
	return specs, nil
}

func (p *part) netns(node string) string {
	for _, n := range p.record.Nodes {
		if n.Name == node {
			return n.Netns
		}
	}
	return p.place.Namespace(node) // a missing path
}

func (p *part) ShapeLinks(ctx context.Context, changes []link.Change) error {
	if err := p.running().Set(ctx, changes); err != nil {
		return fmt.Errorf("change links: %w", err)
	}
	return nil
}

func (p *part) LinkStats(ctx context.Context, ids ...string) ([]link.Stats, error) {
	return p.running().Stats(ctx, ids...)
}

func (p *part) Lateness(ctx context.Context, reset bool) (link.Lateness, error) {
	engine := p.running()
	if engine.Lateness == nil {
		return link.Lateness{}, nil
	}
	return engine.Lateness(ctx, reset)
}

// fixedAddr is a target of measurements.
type fixedAddr struct{ at netip.Addr }

func (t fixedAddr) Addr() string          { return t.at.String() }
func (t fixedAddr) Do(func() error) error { return machine.ErrRemoteHost }

func (p *part) MeasureRTT(ctx context.Context, e machine.RTTSpec) ([]probe.RTTResult, error) {
	pairs := make([]probe.Pair, len(e.Paths))
	from := map[string]*host.Node{}
	for i, w := range e.Paths {
		if from[w.Node] == nil {
			n, err := p.node(w.Node)
			if err != nil {
				return nil, err
			}
			from[w.Node] = n
		}
		pairs[i] = probe.Pair{From: from[w.Node], To: fixedAddr{w.To}}
	}
	if e.Undisturbed {
		return probe.MeasureUndisturbedRTT(ctx, pairs, e.Count, e.Interval)
	}
	return probe.MeasureRTT(ctx, pairs, e.Count, e.Interval)
}

// linkHost is a node with its address on a link.
type linkHost struct {
	*host.Node
	at netip.Addr
}

func (p linkHost) Addr() string { return p.at.String() }

func (p *part) MeasureTrain(ctx context.Context, t machine.TrainSpec) (probe.TrainResult, error) {
	var ends [2]linkHost
	for i, e := range []machine.TrainEnd{t.From, t.To} {
		if e.Node == "" && t.Meeting != nil {
			continue
		}
		n, err := p.node(e.Node)
		if err != nil {
			return probe.TrainResult{}, err
		}
		ends[i] = linkHost{n, e.Addr}
	}
	from, to := ends[0], ends[1]
	var arrivals []probe.Arrival
	var err error
	switch {
	case t.Meeting == nil:
		arrivals, err = probe.SendTrain(ctx, from, to, t.Packets)
	case to.Node != nil:
		arrivals, err = probe.ReceiveTrain(ctx, to, *t.Meeting, t.Packets)
	default:
		err = probe.DispatchTrain(ctx, from, t.To.Addr, *t.Meeting, t.Packets)
	}
	return probe.AnalyzeTrain(arrivals, t.Packets.Bytes), err
}
