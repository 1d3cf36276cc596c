package machinetest

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
	"skerry/test/testkit"
)

// connect connects from a node to a closed port of the other: a refusal is an answer.
func connect(t *testing.T, p machine.Part, from string, within time.Duration) error {
	t.Helper()
	h, err := p.Host(from)
	if err != nil {
		t.Fatal(err)
	}
	to := addrB
	if from == nodeB {
		to = addrA
	}
	err = host.CheckAccepts(t.Context(), h, net.JoinHostPort(to.String(), "9"), within)
	if isRefused(err) {
		return nil
	}
	return err
}

// answered waits until the nodes reach each other.
func answered(t *testing.T, p machine.Part) {
	t.Helper()
	if err := connect(t, p, nodeA, time.Minute); err != nil {
		t.Errorf("from one node to the other: %v", err)
	}
}

// silence is how long to wait in order to conclude that no answer comes.
const silence = 200 * time.Millisecond

// A change of one direction does not affect the other.
func testLinks(t *testing.T, s Site) {
	p := up(t, s, s.owned())
	answered(t, p)
	before := linkStats(t, p)
	if before.AB.Packets == 0 || before.BA.Packets == 0 {
		t.Fatalf("statistics %+v; want packets in both directions", before)
	}
	down := link.Quality{Down: true}
	if err := p.ShapeLinks(t.Context(), []link.Change{{ID: linkID, BA: &down}}); err != nil {
		t.Fatal(err)
	}
	if err := connect(t, p, nodeA, silence); err == nil {
		t.Error("received a reply over a direction that is down")
	}
	after := linkStats(t, p)
	if after.AB.DroppedLoss != before.AB.DroppedLoss || after.AB.Packets <= before.AB.Packets || after.BA.DroppedLoss <= before.BA.DroppedLoss {
		t.Errorf("statistics %+v, then %+v; want losses from b only", before, after)
	}
	q := link.Quality{Latency: 2 * latency}
	if err := p.ShapeLinks(t.Context(), []link.Change{{ID: linkID, AB: &q, BA: &q}}); err != nil {
		t.Fatal(err)
	}
	answered(t, p)
	if late, err := p.Lateness(t.Context(), true); err != nil || late.Known && late.Max == 0 {
		t.Errorf("lateness %+v, %v", late, err)
	}
}

// A packet train arrives at the pace of its link, in both directions, even between machines.
func testTrains(t *testing.T, s Site) {
	p := up(t, s, s.owned())
	answered(t, p)
	const bps = 20_000_000
	q := link.Quality{Latency: latency, Bandwidth: bps}
	a, b := machine.TrainEnd{Node: nodeA, Addr: addrA}, machine.TrainEnd{Node: nodeB, Addr: addrB}
	if err := p.ShapeLinks(t.Context(), []link.Change{{ID: linkID, AB: &q, BA: &q}}); err != nil {
		t.Fatal(err)
	}
	for _, x := range []machine.TrainSpec{{From: a, To: b}, {From: b, To: a}} {
		w := probe.Way{Link: linkID, From: x.From.Node, To: x.To.Node, Send: func(ctx context.Context, t probe.Train) (probe.TrainResult, error) {
			x.Packets = t
			return p.MeasureTrain(ctx, x)
		}}
		got, err := probe.MeasureBandwidth(t.Context(), w, bps)
		for range 10 {
			if errors.Is(err, probe.ErrDisturbed) {
				got, err = probe.MeasureBandwidth(t.Context(), w, bps)
			}
		}
		switch {
		case errors.Is(err, probe.ErrDisturbed):
			testkit.Lacks(t, testkit.Quiet, err)
		case err != nil:
			t.Fatal(err)
		case got < 0.98*bps || got > 1.02*bps:
			t.Errorf("from %s to %s: %d bit/s, want %d within 2 %%", w.From, w.To, got, bps)
		}
	}
	lost := machine.TrainSpec{From: machine.TrainEnd{Node: "c", Addr: addrA}, To: b, Packets: probe.Train{Packets: 2, Bytes: probe.MinPacketBytes}}
	if _, err := p.MeasureTrain(t.Context(), lost); !errors.Is(err, machine.ErrNoNode) {
		t.Errorf("a train from an unknown node: %v", err)
	}
}

func testCarrier(t *testing.T, s Site) {
	p := up(t, s, s.owned())
	answered(t, p)
	for _, step := range []struct {
		up   bool
		want bool
	}{{false, false}, {true, true}} {
		for _, r := range routes() {
			c := machine.Cable{Node: r.Node, Devices: []string{deviceOf}, Routes: []machine.Route{r}}
			if err := p.SetCarrier(t.Context(), c, step.up); err != nil {
				t.Fatal(err)
			}
		}
		within := silence
		if step.want {
			within = time.Minute
		}
		if err := connect(t, p, nodeA, within); (err == nil) != step.want {
			t.Errorf("carrier %t: %v", step.up, err)
		}
	}
}

// Packets leave through the device of their route; a TUN receives those for its network.
func testWays(t *testing.T, s Site) {
	p := up(t, s, s.owned())
	tun := machine.TUN{Node: nodeA, Name: "mesh", MTU: 1400, To: netip.MustParsePrefix("10.9.0.0/16")}
	if err := p.MakeTUN(t.Context(), tun); err != nil {
		t.Fatal(err)
	}
	to := []netip.Addr{addrB, netip.MustParseAddr("10.9.1.1"), netip.MustParseAddr("192.0.2.1"), addrB}
	got, err := p.LookupRoutes(t.Context(), nodeA, to)
	if diff := cmp.Diff([]string{deviceOf, "mesh", "", deviceOf}, got); err != nil || diff != "" {
		t.Errorf("ways: %v %s", err, diff)
	}
	h, err := p.Host(nodeB)
	if err != nil {
		t.Fatal(err)
	}
	in, err := machine.AsLocalHost(h)
	if errors.Is(err, machine.ErrRemoteHost) {
		return
	}
	var listener net.Listener
	if err := in.Do(func() (err error) {
		listener, err = net.Listen("tcp4", net.JoinHostPort(h.Addr(), "0"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	for node, want := range map[string]bool{nodeA: false, nodeB: true} {
		if got, err := p.IsListening(t.Context(), node, port); err != nil || got != want {
			t.Errorf("a program listens on %s: %t, %v", node, got, err)
		}
	}
}

// Invalid requests return errors and change nothing.
func testRefusals(t *testing.T, s Site) {
	p := up(t, s, s.owned())
	far := Links()
	far[0].ID, far[0].A.Device, far[0].B.Machine = "far", "lk1", "rack-2"
	tests := map[string]struct {
		do   func(ctx context.Context) error
		want error
	}{
		"a link to an unreachable machine": {func(ctx context.Context) error { return p.MakeLinks(ctx, far) }, machine.ErrElsewhere},
		"an existing link":                 {func(ctx context.Context) error { return p.MakeLinks(ctx, Links()) }, link.ErrExists},
		"a tunnel with one end": {func(ctx context.Context) error {
			return p.MakeTunnels(ctx, []machine.TunnelEnd{{Link: linkID, Node: nodeA, Device: "wg0", Addr: addrA}})
		}, machine.ErrElsewhere},
		"a change of an unknown link": {func(ctx context.Context) error {
			return p.ShapeLinks(ctx, []link.Change{{ID: "x~y", AB: &link.Quality{}}})
		}, link.ErrUnknown},
		"the carrier of an unknown node": {func(ctx context.Context) error { return p.SetCarrier(ctx, machine.Cable{Node: "c"}, false) }, machine.ErrNoNode},
		"a name in use": {func(ctx context.Context) error {
			_, err := s.Other.Prepare(ctx, s.partSpec())
			return err
		}, machine.ErrExists},
		"a missing lab": {func(ctx context.Context) error {
			_, err := s.Other.Open(ctx, s.Lab+"-not")
			return err
		}, machine.ErrNotFound},
		"ending a missing lab": {func(ctx context.Context) error { return s.Other.Remove(ctx, s.Lab+"-not") }, machine.ErrNotFound},
	}
	before, err := p.LinkStats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range tests {
		if err := tt.do(t.Context()); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", name, err, tt.want)
		}
	}
	after, err := p.LinkStats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(linkIDs(before), linkIDs(after)); diff != "" {
		t.Errorf("links after refused calls: %s", diff)
	}
}

func linkIDs(stats []link.Stats) (ids []string) {
	for _, s := range stats {
		ids = append(ids, s.ID)
	}
	return ids
}

func linkStats(t *testing.T, p machine.Part) link.Stats {
	t.Helper()
	stats, err := p.LinkStats(t.Context(), linkID)
	if err != nil || len(stats) != 1 || stats[0].ID != linkID {
		t.Fatalf("statistics %+v, %v; want those of one link", stats, err)
	}
	return stats[0]
}

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
		t.Errorf("%T cannot be received: %v", v, err)
		return v
	}
	if diff := cmp.Diff(v, got, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
		t.Errorf("%T changed in transit: %s", v, diff)
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
