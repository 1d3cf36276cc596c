package machinetest

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
	"skerry/internal/testkit"
)

// connect connects from a node to the other, where nothing listens: to be refused is to
// have been answered.
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
	err = host.Accepts(t.Context(), h, net.JoinHostPort(to.String(), "9"), within)
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

// silence is how long an answer is waited for that is not to come.
const silence = 200 * time.Millisecond

// What an end sends is counted and changed at that end: the other direction stays as it is.
func testLinks(t *testing.T, s Site) {
	p := up(t, s, s.owned())
	answered(t, p)
	sent, err := p.Sent(t.Context(), linkID)
	if err != nil {
		t.Fatal(err)
	}
	for i, node := range []string{nodeA, nodeB} {
		if len(sent) != 2 || sent[i].Link != linkID || sent[i].Node != node || sent[i].Packets == 0 {
			t.Fatalf("sent: %+v; want packets of a, then of b", sent)
		}
	}
	down := link.Quality{Down: true}
	if err := p.Send(t.Context(), []link.Sending{{Link: linkID, Node: nodeB, Sends: down}}); err != nil {
		t.Fatal(err)
	}
	if err := connect(t, p, nodeA, silence); err == nil {
		t.Error("answers came over an end that sends nothing")
	}
	after, err := p.Sent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after[0].DroppedLoss != sent[0].DroppedLoss || after[0].Packets <= sent[0].Packets || after[1].DroppedLoss <= sent[1].DroppedLoss {
		t.Errorf("sent %+v, then %+v; want b's lost alone", sent, after)
	}
	q := link.Quality{Latency: 2 * latency}
	both := []link.Sending{{Link: linkID, Node: nodeB, Sends: q}, {Link: linkID, Node: nodeA, Sends: q}}
	if err := p.Send(t.Context(), both); err != nil {
		t.Fatal(err)
	}
	answered(t, p)
	if late, err := p.Lateness(t.Context(), true); err != nil || late.Known && late.Max == 0 {
		t.Errorf("lateness %+v, %v", late, err)
	}
}

// A train that is shaped where it is sent comes at the pace of its link, both ways, whatever machines its ends are on.
func testTrains(t *testing.T, s Site) {
	p := up(t, s, s.owned())
	answered(t, p)
	const bps = 20_000_000
	q := link.Quality{Latency: latency, Bandwidth: bps}
	a, b := machine.End{Node: nodeA, Addr: addrA}, machine.End{Node: nodeB, Addr: addrB}
	if err := p.Send(t.Context(), []link.Sending{{Link: linkID, Node: nodeA, Sends: q}, {Link: linkID, Node: nodeB, Sends: q}}); err != nil {
		t.Fatal(err)
	}
	for _, x := range []machine.Train{{From: a, To: b}, {From: b, To: a}} {
		w := probe.Way{Link: linkID, From: x.From.Node, To: x.To.Node, Send: func(ctx context.Context, t probe.Train) (probe.TrainResult, error) {
			x.Packets = t
			return p.Train(ctx, x)
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
	lost := machine.Train{From: machine.End{Node: "c", Addr: addrA}, To: b, Packets: probe.Train{Packets: 2, Bytes: probe.MinPacketBytes}}
	if _, err := p.Train(t.Context(), lost); !errors.Is(err, machine.ErrNoNode) {
		t.Errorf("a train from no node: %v", err)
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
			if err := p.Carrier(t.Context(), c, step.up); err != nil {
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

// Packets leave by the device that the kernel has for them; a TUN takes those for its network.
func testWays(t *testing.T, s Site) {
	p := up(t, s, s.owned())
	tun := machine.TUN{Node: nodeA, Name: "mesh", MTU: 1400, To: netip.MustParsePrefix("10.9.0.0/16")}
	if err := p.TUN(t.Context(), tun); err != nil {
		t.Fatal(err)
	}
	to := []netip.Addr{addrB, netip.MustParseAddr("10.9.1.1"), netip.MustParseAddr("192.0.2.1"), addrB}
	got, err := p.Ways(t.Context(), nodeA, to)
	if diff := cmp.Diff([]string{deviceOf, "mesh", "", deviceOf}, got); err != nil || diff != "" {
		t.Errorf("ways: %v %s", err, diff)
	}
	h, err := p.Host(nodeB)
	if err != nil {
		t.Fatal(err)
	}
	in, err := machine.Enter(h)
	if errors.Is(err, machine.ErrOutside) {
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
		if got, err := p.Listening(t.Context(), node, port); err != nil || got != want {
			t.Errorf("a program listens on %s: %t, %v", node, got, err)
		}
	}
}

// What cannot be done is told, and nothing is made of it.
func testRefusals(t *testing.T, s Site) {
	p := up(t, s, s.owned())
	far := Halves()[:1]
	far[0].Link, far[0].Device, far[0].Peer.Machine = "far", "lk1", "rack-2"
	tests := map[string]struct {
		do   func(ctx context.Context) error
		want error
	}{
		"a half that leads elsewhere": {func(ctx context.Context) error { return p.Link(ctx, far) }, machine.ErrElsewhere},
		"a link that is there":        {func(ctx context.Context) error { return p.Link(ctx, Halves()) }, link.ErrExists},
		"a tunnel with one end": {func(ctx context.Context) error {
			return p.Tunnel(ctx, []machine.TunnelEnd{{Link: linkID, Node: nodeA, Device: "wg0", Addr: addrA}})
		}, machine.ErrElsewhere},
		"what an unknown link sends": {func(ctx context.Context) error {
			return p.Send(ctx, []link.Sending{{Link: "x~y", Node: nodeA}})
		}, link.ErrUnknown},
		"what a stranger to a link sends": {func(ctx context.Context) error {
			return p.Send(ctx, []link.Sending{{Link: linkID, Node: "c"}})
		}, link.ErrUnknown},
		"the carrier of no node": {func(ctx context.Context) error { return p.Carrier(ctx, machine.Cable{Node: "c"}, false) }, machine.ErrNoNode},
		"a name that is taken": {func(ctx context.Context) error {
			_, err := s.Other.Prepare(ctx, s.ask())
			return err
		}, machine.ErrExists},
		"a lab that is not there": {func(ctx context.Context) error {
			_, err := s.Other.Open(ctx, s.Lab+"-not")
			return err
		}, machine.ErrNotFound},
		"the end of a lab that is not there": {func(ctx context.Context) error { return s.Other.Remove(ctx, s.Lab+"-not") }, machine.ErrNotFound},
	}
	before, err := p.Sent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range tests {
		if err := tt.do(t.Context()); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", name, err, tt.want)
		}
	}
	after, err := p.Sent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ends(before), ends(after)); diff != "" {
		t.Errorf("ends of links, after nothing was to be made: %s", diff)
	}
}

func ends(sent []link.Sent) (names []string) {
	for _, s := range sent {
		names = append(names, s.Link+" at "+s.Node)
	}
	return names
}
