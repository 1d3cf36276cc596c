package machinetest

import (
	"context"
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
)

// Sent returns a machine whose arguments and results pass through JSON. The test fails if that loses information.
func Sent(t testing.TB, m machine.Machine) machine.Machine { return &sent{m, t} }

func through[T any](t testing.TB, v T) T {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Errorf("%T cannot be sent: %v", v, err)
		return v
	}
	var got T
	if err := json.Unmarshal(text, &got); err != nil {
		t.Errorf("%T does not arrive: %v", v, err)
		return v
	}
	if diff := cmp.Diff(v, got, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
		t.Errorf("%T arrives as another: %s", v, diff)
	}
	return got
}

type sent struct {
	machine.Machine
	t testing.TB
}

func (s *sent) Prepare(ctx context.Context, a machine.PartSpec) (machine.Part, error) {
	return s.part(s.Machine.Prepare(ctx, through(s.t, a)))
}

func (s *sent) Open(ctx context.Context, lab string) (machine.Part, error) {
	return s.part(s.Machine.Open(ctx, lab))
}

func (s *sent) part(p machine.Part, err error) (machine.Part, error) {
	if err != nil {
		return nil, err
	}
	return &sentPart{p, s.t}, nil
}

func (s *sent) List(ctx context.Context) ([]machine.PartStatus, error) {
	found, err := s.Machine.List(ctx)
	return through(s.t, found), err
}

// sentPart does not encode plain names and texts.
type sentPart struct {
	machine.Part
	t testing.TB
}

func (p *sentPart) Members() []machine.Member { return []machine.Member{{Part: p}} }

func (p *sentPart) Facts() machine.Facts { return through(p.t, p.Part.Facts()) }

func (p *sentPart) MakeNodes(ctx context.Context, nodes []machine.NodeSpec) error {
	return p.Part.MakeNodes(ctx, through(p.t, nodes))
}

func (p *sentPart) ContainerHost(c machine.Container) (host.Host, error) {
	return p.Part.ContainerHost(through(p.t, c))
}

func (p *sentPart) SetNames(ctx context.Context, names []machine.NameRecord) error {
	return p.Part.SetNames(ctx, through(p.t, names))
}

func (p *sentPart) MakeLinks(ctx context.Context, links []link.Spec) error {
	return p.Part.MakeLinks(ctx, through(p.t, links))
}

func (p *sentPart) AdoptLinks(ctx context.Context, links []link.Spec) error {
	return p.Part.AdoptLinks(ctx, through(p.t, links))
}

func (p *sentPart) ShapeLinks(ctx context.Context, changes []link.Change) error {
	return p.Part.ShapeLinks(ctx, through(p.t, changes))
}

func (p *sentPart) LinkStats(ctx context.Context, ids ...string) ([]link.Stats, error) {
	got, err := p.Part.LinkStats(ctx, ids...)
	return through(p.t, got), err
}

func (p *sentPart) Lateness(ctx context.Context, reset bool) (link.Lateness, error) {
	got, err := p.Part.Lateness(ctx, reset)
	return through(p.t, got), err
}

func (p *sentPart) MakeTunnels(ctx context.Context, ends []machine.TunnelEnd) error {
	return p.Part.MakeTunnels(ctx, through(p.t, ends))
}

func (p *sentPart) SetAddresses(ctx context.Context, devices []machine.Device) error {
	return p.Part.SetAddresses(ctx, through(p.t, devices))
}

func (p *sentPart) AddRoutes(ctx context.Context, routes []machine.Route) error {
	return p.Part.AddRoutes(ctx, through(p.t, routes))
}

func (p *sentPart) SetCarrier(ctx context.Context, c machine.Cable, up bool) error {
	return p.Part.SetCarrier(ctx, through(p.t, c), up)
}

func (p *sentPart) LookupRoutes(ctx context.Context, node string, to []netip.Addr) ([]string, error) {
	got, err := p.Part.LookupRoutes(ctx, node, through(p.t, to))
	return through(p.t, got), err
}

func (p *sentPart) MeasureTrain(ctx context.Context, x machine.TrainSpec) (probe.TrainResult, error) {
	got, err := p.Part.MeasureTrain(ctx, through(p.t, x))
	return through(p.t, got), err
}

func (p *sentPart) MakeTUN(ctx context.Context, t machine.TUN) error {
	return p.Part.MakeTUN(ctx, through(p.t, t))
}

func (p *sentPart) MakeBridges(ctx context.Context, bridges []machine.Bridge) error {
	return p.Part.MakeBridges(ctx, through(p.t, bridges))
}

func (p *sentPart) SetRules(ctx context.Context, rules []machine.RuleSet) error {
	return p.Part.SetRules(ctx, through(p.t, rules))
}
