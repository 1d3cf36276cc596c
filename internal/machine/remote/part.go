package remote

import (
	"context"
	"encoding/json"
	"net/netip"
	"sync"

	"skerry/internal/link"
	"skerry/internal/machine"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/internal/machine/rpc"
)

// part is a part of a lab on a machine.
type part struct {
	m  *Machine
	of rpc.Of

	mu    sync.Mutex
	facts machine.Facts
	nodes map[string]*node
	ended <-chan struct{}
	// unlock ends the answer for whose length the part is locked; nil while it is not.
	unlock func() error
}

var (
	_ machine.Part  = (*part)(nil)
	_ machine.Timed = (*part)(nil)
)

// clockProbes is how often a machine is asked for its time, for the best of the answers.
const clockProbes = 20

// Clock implements machine.Timed.
func (p *part) Clock(ctx context.Context) (machine.Clock, error) { return p.m.Clock(ctx, clockProbes) }

// Kernel implements machine.Timed.
func (p *part) Kernel() string { return p.m.kernel }

// Facts implements machine.Part: of a machine that is lost, the last that were told.
func (p *part) Facts() machine.Facts {
	f, err := ask[machine.Facts](context.Background(), p.m, "/part/facts", p.of, rpc.Nothing{})
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.facts = f
	}
	return p.facts
}

// Files implements machine.Part.
func (p *part) Files() files.System { return system{p.m, p.of} }

func (p *part) tell(ctx context.Context, path string, q any) error {
	return tell(ctx, p.m, path, p.of, q)
}

// Make implements machine.Nodes.
func (p *part) Make(ctx context.Context, nodes []machine.Node) error {
	return p.tell(ctx, "/part/make", nodes)
}

// Host implements machine.Nodes.
func (p *part) Host(name string) (host.Host, error) {
	p.mu.Lock()
	known := p.nodes[name]
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}
	of := rpc.Of{Part: p.of.Part, Node: name}
	is, err := ask[rpc.Host](context.Background(), p.m, "/host", of, rpc.Nothing{})
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

// Contain implements machine.Nodes.
func (p *part) Contain(c machine.Container) (host.Host, error) {
	of := rpc.Of{Part: p.of.Part, Node: c.Node, Container: &c}
	is, err := ask[rpc.Host](context.Background(), p.m, "/host", of, rpc.Nothing{})
	if err != nil {
		return nil, err
	}
	return &container{node: &node{m: p.m, of: of, is: is}, as: c}, nil
}

// Name implements machine.Nodes.
func (p *part) Name(ctx context.Context, names []machine.Named) error {
	return p.tell(ctx, "/part/name", names)
}

// Resolve implements machine.Nodes.
func (p *part) Resolve(ctx context.Context, server netip.Addr) error {
	return p.tell(ctx, "/part/resolve", server)
}

// Meet implements machine.Between.
func (p *part) Meet(ctx context.Context, m machine.Meeting) (machine.Met, error) {
	return ask[machine.Met](ctx, p.m, "/part/meet", p.of, m)
}

// Cross implements machine.Between.
func (p *part) Cross(ctx context.Context, c machine.Crossing) error {
	return p.tell(ctx, "/part/cross", c)
}

// Link implements machine.Links.
func (p *part) Link(ctx context.Context, links []link.Spec) error {
	return p.tell(ctx, "/part/link", links)
}

// Adopt implements machine.Links.
func (p *part) Adopt(ctx context.Context, links []link.Spec) error {
	return p.tell(ctx, "/part/adopt", links)
}

// Set implements machine.Links.
func (p *part) Set(ctx context.Context, changes []link.Change) error {
	return p.tell(ctx, "/part/set", changes)
}

// Stats implements machine.Links.
func (p *part) Stats(ctx context.Context, ids ...string) ([]link.Stats, error) {
	return ask[[]link.Stats](ctx, p.m, "/part/stats", p.of, ids)
}

// Lateness implements machine.Links.
func (p *part) Lateness(ctx context.Context, reset bool) (link.Lateness, error) {
	return ask[link.Lateness](ctx, p.m, "/part/lateness", p.of, reset)
}

// Keep implements machine.Part.
func (p *part) Keep(ctx context.Context, lab json.RawMessage) error {
	return p.tell(ctx, "/part/keep", lab)
}

// SetNote implements machine.Part.
func (p *part) SetNote(ctx context.Context, note json.RawMessage) error {
	return p.tell(ctx, "/part/note/set", note)
}

// Note implements machine.Part.
func (p *part) Note(ctx context.Context) (json.RawMessage, error) {
	return ask[json.RawMessage](ctx, p.m, "/part/note", p.of, rpc.Nothing{})
}

// Lock implements machine.Part. The machine holds the lock for as long as the answer lasts:
//
//  1. Who waits for a lock gives up, and the message that says so is under way.
//  2. The holder gives the lock back. The machine, which has not read that message, takes the lock for
//     who waited, and answers nobody.
//  3. Were a lock held until it is given back by a second call, it would now be held for ever: nobody
//     knows of it. The answer that nobody reads ends with the message of step 1, and the lock with it.
func (p *part) Lock(ctx context.Context) error {
	lasts, end := context.WithCancel(context.WithoutCancel(ctx)) // the lock outlives the wait for it
	wanted := context.AfterFunc(ctx, end)
	a, err := p.m.begin(lasts, "/part/lock", p.of, rpc.Nothing{}, nil)
	if !wanted() {
		if err == nil {
			a.Close()
		}
		return p.m.failed(ctx, "part lock", ctx.Err())
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

// Unlock implements machine.Part.
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

// Down implements machine.Part.
func (p *part) Down(ctx context.Context) error { return p.tell(ctx, "/part/down", rpc.Nothing{}) }

// Close implements machine.Part.
func (p *part) Close() error { return p.tell(context.Background(), "/part/close", rpc.Nothing{}) }

// Members implements machine.Part.
func (p *part) Members() []machine.Member { return []machine.Member{{Part: p}} }

// Ended implements machine.Part. It is closed as well when the machine is lost.
func (p *part) Ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return p.ended
	}
	a, err := p.m.begin(context.Background(), "/part/ended", p.of, rpc.Nothing{}, nil)
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
		_, _ = a.rest.WriteTo(nowhere{}) // its end is what is waited for
	})
	return gone
}

// nowhere takes what is of no use.
type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
