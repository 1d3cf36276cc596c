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

// Sent is a machine as one is that is asked by messages: whatever is asked and answered goes
// through JSON, and the test fails where that loses something.
func Sent(t testing.TB, m machine.Machine) machine.Machine { return &sent{m, t} }

// through is a value as it arrives.
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

func (s *sent) Prepare(ctx context.Context, a machine.Ask) (machine.Part, error) {
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

func (s *sent) List(ctx context.Context) ([]machine.Found, error) {
	found, err := s.Machine.List(ctx)
	return through(s.t, found), err
}

// sentPart passes on without a change what is no more than a name or a text.
type sentPart struct {
	machine.Part
	t testing.TB
}

func (p *sentPart) Members() []machine.Member { return []machine.Member{{Part: p}} }

func (p *sentPart) Facts() machine.Facts { return through(p.t, p.Part.Facts()) }

func (p *sentPart) Make(ctx context.Context, nodes []machine.Node) error {
	return p.Part.Make(ctx, through(p.t, nodes))
}

func (p *sentPart) Contain(c machine.Container) (host.Host, error) {
	return p.Part.Contain(through(p.t, c))
}

func (p *sentPart) Name(ctx context.Context, names []machine.Named) error {
	return p.Part.Name(ctx, through(p.t, names))
}

func (p *sentPart) Link(ctx context.Context, links []link.Spec) error {
	return p.Part.Link(ctx, through(p.t, links))
}

func (p *sentPart) Adopt(ctx context.Context, links []link.Spec) error {
	return p.Part.Adopt(ctx, through(p.t, links))
}

func (p *sentPart) Set(ctx context.Context, changes []link.Change) error {
	return p.Part.Set(ctx, through(p.t, changes))
}

func (p *sentPart) Stats(ctx context.Context, ids ...string) ([]link.Stats, error) {
	got, err := p.Part.Stats(ctx, ids...)
	return through(p.t, got), err
}

func (p *sentPart) Lateness(ctx context.Context, reset bool) (link.Lateness, error) {
	got, err := p.Part.Lateness(ctx, reset)
	return through(p.t, got), err
}

func (p *sentPart) Tunnel(ctx context.Context, ends []machine.TunnelEnd) error {
	return p.Part.Tunnel(ctx, through(p.t, ends))
}

func (p *sentPart) Address(ctx context.Context, devices []machine.Device) error {
	return p.Part.Address(ctx, through(p.t, devices))
}

func (p *sentPart) Route(ctx context.Context, routes []machine.Route) error {
	return p.Part.Route(ctx, through(p.t, routes))
}

func (p *sentPart) Carrier(ctx context.Context, c machine.Cable, up bool) error {
	return p.Part.Carrier(ctx, through(p.t, c), up)
}

func (p *sentPart) Ways(ctx context.Context, node string, to []netip.Addr) ([]string, error) {
	got, err := p.Part.Ways(ctx, node, through(p.t, to))
	return through(p.t, got), err
}

func (p *sentPart) Train(ctx context.Context, x machine.Train) (probe.TrainResult, error) {
	got, err := p.Part.Train(ctx, through(p.t, x))
	return through(p.t, got), err
}

func (p *sentPart) TUN(ctx context.Context, t machine.TUN) error {
	return p.Part.TUN(ctx, through(p.t, t))
}

func (p *sentPart) Bridge(ctx context.Context, bridges []machine.Bridge) error {
	return p.Part.Bridge(ctx, through(p.t, bridges))
}

func (p *sentPart) Rule(ctx context.Context, rules []machine.Rules) error {
	return p.Part.Rule(ctx, through(p.t, rules))
}
