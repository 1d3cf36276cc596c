package remote

import (
	"context"
	"encoding/json"
	"io"
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
	f, err := callResult[machine.Facts](context.Background(), p.m, "/part/Facts", p.of)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.facts = f
	}
	return p.facts
}

func (p *part) Files() files.System { return system{p.m, p.of} }

func (p *part) Host(name string) (host.Host, error) {
	p.mu.Lock()
	known := p.nodes[name]
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}
	of := rpc.CallTarget{Part: p.of.Part, Node: name}
	is, err := callResult[rpc.HostInfo](context.Background(), p.m, "/host/Describe", of)
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
	is, err := callResult[rpc.HostInfo](context.Background(), p.m, "/host/Describe", of)
	if err != nil {
		return nil, err
	}
	return &container{node: &node{m: p.m, of: of, is: is}, as: c}, nil
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
	a, err := p.m.beginCall(lasts, "/part/Lock", p.of, nil)
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

func (p *part) Members() []machine.Member { return []machine.Member{{Part: p}} }

func (p *part) Ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return p.ended
	}
	a, err := p.m.beginCall(context.Background(), "/part/Ended", p.of, nil)
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
		_, _ = a.rest.WriteTo(io.Discard) // the caller waits for its end
	})
	return gone
}

func (p *part) call(ctx context.Context, method string, params ...any) error {
	return callEmpty(ctx, p.m, "/part/"+method, p.of, params...)
}

// callPart calls a method of the part on its machine that returns a result.
func callPart[A any](ctx context.Context, p *part, method string, params ...any) (A, error) {
	return callResult[A](ctx, p.m, "/part/"+method, p.of, params...)
}

func (p *part) MakeNodes(ctx context.Context, n []machine.NodeSpec) error {
	return p.call(ctx, "MakeNodes", n)
}
func (p *part) SetNames(ctx context.Context, n []machine.NameRecord) error {
	return p.call(ctx, "SetNames", n)
}
func (p *part) SetResolver(ctx context.Context, server netip.Addr) error {
	return p.call(ctx, "SetResolver", server)
}
func (p *part) ConnectPeers(ctx context.Context, c machine.PeerSet) error {
	return p.call(ctx, "ConnectPeers", c)
}
func (p *part) MakeLinks(ctx context.Context, l []link.Spec) error {
	return p.call(ctx, "MakeLinks", l)
}
func (p *part) AdoptLinks(ctx context.Context, l []link.Spec) error {
	return p.call(ctx, "AdoptLinks", l)
}
func (p *part) ShapeLinks(ctx context.Context, c []link.Change) error {
	return p.call(ctx, "ShapeLinks", c)
}
func (p *part) MakeTunnels(ctx context.Context, e []machine.TunnelEnd) error {
	return p.call(ctx, "MakeTunnels", e)
}
func (p *part) SetAddresses(ctx context.Context, d []machine.Device) error {
	return p.call(ctx, "SetAddresses", d)
}
func (p *part) AddRoutes(ctx context.Context, r []machine.Route) error {
	return p.call(ctx, "AddRoutes", r)
}
func (p *part) SetCarrier(ctx context.Context, c machine.Cable, up bool) error {
	return p.call(ctx, "SetCarrier", c, up)
}
func (p *part) MakeTUN(ctx context.Context, t machine.TUN) error { return p.call(ctx, "MakeTUN", t) }
func (p *part) MakeBridges(ctx context.Context, b []machine.Bridge) error {
	return p.call(ctx, "MakeBridges", b)
}
func (p *part) SetRules(ctx context.Context, r []machine.RuleSet) error {
	return p.call(ctx, "SetRules", r)
}
func (p *part) Commit(ctx context.Context, lab json.RawMessage) error {
	return p.call(ctx, "Commit", lab)
}
func (p *part) SetNote(ctx context.Context, note json.RawMessage) error {
	return p.call(ctx, "SetNote", note)
}
func (p *part) Down(ctx context.Context) error { return p.call(ctx, "Down") }
func (p *part) Close() error                   { return p.call(context.Background(), "Close") }

func (p *part) Note(ctx context.Context) (json.RawMessage, error) {
	return callPart[json.RawMessage](ctx, p, "Note")
}
func (p *part) MTU(ctx context.Context) (int, error) { return callPart[int](ctx, p, "MTU") }

func (p *part) OpenEndpoint(ctx context.Context, m machine.EndpointSpec) (machine.Endpoint, error) {
	return callPart[machine.Endpoint](ctx, p, "OpenEndpoint", m)
}

func (p *part) LinkStats(ctx context.Context, ids ...string) ([]link.Stats, error) {
	return callPart[[]link.Stats](ctx, p, "LinkStats", ids)
}

func (p *part) Lateness(ctx context.Context, reset bool) (link.Lateness, error) {
	return callPart[link.Lateness](ctx, p, "Lateness", reset)
}

func (p *part) LookupRoutes(ctx context.Context, node string, to []netip.Addr) ([]string, error) {
	return callPart[[]string](ctx, p, "LookupRoutes", node, to)
}

func (p *part) IsListening(ctx context.Context, node string, port int) (bool, error) {
	return callPart[bool](ctx, p, "IsListening", node, port)
}

func (p *part) MeasureRTT(ctx context.Context, e machine.RTTSpec) ([]probe.RTTResult, error) {
	return callPart[[]probe.RTTResult](ctx, p, "MeasureRTT", e)
}

func (p *part) MeasureTrain(ctx context.Context, t machine.TrainSpec) (probe.TrainResult, error) {
	return callPart[probe.TrainResult](ctx, p, "MeasureTrain", t)
}
