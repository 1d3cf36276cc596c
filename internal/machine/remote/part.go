package remote

import (
	"context"
	"encoding/json"
	"net/netip"
	"sync"

	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/machine"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/internal/machine/rpc"
)

type part struct {
	m  *Machine
	of rpc.CallTarget

	mu    sync.Mutex
	facts machine.Facts
	nodes map[string]*node
	ended <-chan struct{}
	// unlock ends the call that holds the lock; nil without the lock.
	unlock func() error
}

var (
	_ machine.Part       = (*part)(nil)
	_ machine.RemotePart = (*part)(nil)
)

func (p *part) Clock(ctx context.Context) (machine.Clock, error) { return p.m.Clock(ctx) }

func (p *part) Kernel() string { return p.m.kernel }

// Facts returns the last known facts if the machine is lost.
func (p *part) Facts() machine.Facts {
	f, err := callResult[machine.Facts](context.Background(), p.m, "/part/facts", p.of, rpc.Empty{})
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.facts = f
	}
	return p.facts
}

func (p *part) Files() files.System { return system{p.m, p.of} }

func (p *part) call(ctx context.Context, path string, q any) error {
	return callEmpty(ctx, p.m, path, p.of, q)
}

func (p *part) MakeNodes(ctx context.Context, nodes []machine.NodeSpec) error {
	return p.call(ctx, "/part/make", nodes)
}

func (p *part) Host(name string) (host.Host, error) {
	p.mu.Lock()
	known := p.nodes[name]
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}
	of := rpc.CallTarget{Part: p.of.Part, Node: name}
	is, err := callResult[rpc.HostInfo](context.Background(), p.m, "/host", of, rpc.Empty{})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nodes[name] == nil { // the first one stays: it is the node
		p.nodes[name] = &node{m: p.m, of: of, is: is}
	}
	return p.nodes[name], nil
}

func (p *part) ContainerHost(c machine.Container) (host.Host, error) {
	of := rpc.CallTarget{Part: p.of.Part, Node: c.Node, Container: &c}
	is, err := callResult[rpc.HostInfo](context.Background(), p.m, "/host", of, rpc.Empty{})
	if err != nil {
		return nil, err
	}
	return &container{node: &node{m: p.m, of: of, is: is}, as: c}, nil
}

func (p *part) SetNames(ctx context.Context, names []machine.NameRecord) error {
	return p.call(ctx, "/part/name", names)
}

func (p *part) SetResolver(ctx context.Context, server netip.Addr) error {
	return p.call(ctx, "/part/resolve", server)
}

func (p *part) OpenEndpoint(ctx context.Context, m machine.EndpointSpec) (machine.Endpoint, error) {
	return callResult[machine.Endpoint](ctx, p.m, "/part/meet", p.of, m)
}

func (p *part) ConnectPeers(ctx context.Context, c machine.PeerSet) error {
	return p.call(ctx, "/part/cross", c)
}

func (p *part) MakeLinks(ctx context.Context, links []link.Spec) error {
	return p.call(ctx, "/part/link", links)
}

func (p *part) AdoptLinks(ctx context.Context, links []link.Spec) error {
	return p.call(ctx, "/part/adopt", links)
}

func (p *part) ShapeLinks(ctx context.Context, changes []link.Change) error {
	return p.call(ctx, "/part/set", changes)
}

func (p *part) LinkStats(ctx context.Context, ids ...string) ([]link.Stats, error) {
	return callResult[[]link.Stats](ctx, p.m, "/part/stats", p.of, ids)
}

func (p *part) Lateness(ctx context.Context, reset bool) (link.Lateness, error) {
	return callResult[link.Lateness](ctx, p.m, "/part/lateness", p.of, reset)
}

func (p *part) Commit(ctx context.Context, lab json.RawMessage) error {
	return p.call(ctx, "/part/keep", lab)
}

func (p *part) SetNote(ctx context.Context, note json.RawMessage) error {
	return p.call(ctx, "/part/note/set", note)
}

func (p *part) Note(ctx context.Context) (json.RawMessage, error) {
	return callResult[json.RawMessage](ctx, p.m, "/part/note", p.of, rpc.Empty{})
}

// Lock implements machine.Part. The machine holds the lock until the call ends. Releasing it by a second call would be
// wrong:
//
//  1. A waiting client gives up and sends a cancellation.
//  2. The holder releases the lock. The machine, which has not read the cancellation, acquires the lock for the waiting
//     client and responds to no one.
//  3. The lock would now be held for ever, because no process would release it. As it is, the cancellation ends the call
//     and with it the lock.
func (p *part) Lock(ctx context.Context) error {
	lasts, end := context.WithCancel(context.WithoutCancel(ctx)) // the lock outlives the wait for it
	wanted := context.AfterFunc(ctx, end)
	a, err := p.m.beginCall(lasts, "/part/lock", p.of, rpc.Empty{}, nil)
	if !wanted() {
		if err == nil {
			a.Close()
		}
		return p.m.callError(ctx, "part lock", ctx.Err())
	}
	if err != nil {
		end()
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unlock = func() error {
		defer end()
		return a.Close()
	}
	return nil
}

func (p *part) Unlock() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unlock == nil {
		return nil
	}
	unlock := p.unlock
	p.unlock = nil
	return unlock()
}

func (p *part) Down(ctx context.Context) error { return p.call(ctx, "/part/down", rpc.Empty{}) }

func (p *part) Close() error { return p.call(context.Background(), "/part/close", rpc.Empty{}) }

func (p *part) Members() []machine.Member { return []machine.Member{{Part: p}} }

func (p *part) Ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return p.ended
	}
	a, err := p.m.beginCall(context.Background(), "/part/ended", p.of, rpc.Empty{}, nil)
	gone := make(chan struct{})
	if err != nil {
		close(gone)
		return gone
	}
	if string(a.first) == "false" {
		a.Close()
		return nil
	}
	p.ended = gone
	p.m.streams.Go(func() {
		defer close(gone)
		defer a.Close()
		_, _ = a.rest.WriteTo(discardWriter{}) // the caller waits for its end
	})
	return gone
}

type discardWriter struct{}

func (discardWriter) Write(b []byte) (int, error) { return len(b), nil }

func (p *part) MakeTunnels(ctx context.Context, ends []machine.TunnelEnd) error {
	return p.call(ctx, "/part/tunnel", ends)
}

func (p *part) SetAddresses(ctx context.Context, devices []machine.Device) error {
	return p.call(ctx, "/part/address", devices)
}

func (p *part) AddRoutes(ctx context.Context, routes []machine.Route) error {
	return p.call(ctx, "/part/route", routes)
}

func (p *part) SetCarrier(ctx context.Context, c machine.Cable, up bool) error {
	return p.call(ctx, "/part/carrier", rpc.CarrierRequest{Cable: c, Up: up})
}

func (p *part) LookupRoutes(ctx context.Context, node string, to []netip.Addr) ([]string, error) {
	return callResult[[]string](ctx, p.m, "/part/ways", p.of, rpc.RouteRequest{Node: node, To: to})
}

func (p *part) MakeTUN(ctx context.Context, t machine.TUN) error { return p.call(ctx, "/part/tun", t) }

func (p *part) IsListening(ctx context.Context, node string, port int) (bool, error) {
	return callResult[bool](ctx, p.m, "/part/listening", p.of, rpc.ListeningRequest{Node: node, Port: port})
}

func (p *part) MeasureRTT(ctx context.Context, e machine.RTTSpec) ([]probe.RTTResult, error) {
	return callResult[[]probe.RTTResult](ctx, p.m, "/part/echo", p.of, e)
}

func (p *part) MeasureTrain(ctx context.Context, t machine.TrainSpec) (probe.TrainResult, error) {
	return callResult[probe.TrainResult](ctx, p.m, "/part/train", p.of, t)
}

func (p *part) MTU(ctx context.Context) (int, error) {
	return callResult[int](ctx, p.m, "/part/mtu", p.of, rpc.Empty{})
}

func (p *part) MakeBridges(ctx context.Context, bridges []machine.Bridge) error {
	return p.call(ctx, "/part/bridge", bridges)
}

func (p *part) SetRules(ctx context.Context, rules []machine.RuleSet) error {
	return p.call(ctx, "/part/rule", rules)
}
