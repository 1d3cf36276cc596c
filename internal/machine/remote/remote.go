// Package remote is a machine that is asked over a connection to an agent on it. It keeps the
// contract of package machine; its nodes cannot be entered.
package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"skerry/internal/machine"
	"skerry/internal/machine/rpc"
)

// ErrLost says that a machine is out of reach: its agent has ended, or what carried it.
var ErrLost = errors.New("the machine is out of reach")

// Machine is a machine with an agent.
type Machine struct {
	name string
	// why says what the carrier complained of.
	why       func() string
	conn      *rpc.Conn
	transport *http.Transport
	streams   sync.WaitGroup // of goroutines that carry what processes and connections say
	ahead     atomic.Int64   // ns, by which the machine's clock is, as last asked
	kernel    string         // its release, of Hello
}

var _ machine.Machine = (*Machine)(nil)

// New asks the agent at the other end of a connection that has said its greeting. Errors begin
// with the machine's name; why, which may be nil, adds what is known when the agent is lost.
func New(name string, conn *rpc.Conn, why func() string) *Machine {
	if why == nil {
		why = func() string { return "" }
	}
	m := &Machine{name: name, conn: conn, why: why}
	var once sync.Once
	m.transport = &http.Transport{
		Protocols: rpc.Protocols(), HTTP2: rpc.HTTP2(), DisableCompression: true,
		DialContext: func(context.Context, string, string) (c net.Conn, err error) {
			err = net.ErrClosed
			once.Do(func() { c, err = conn, nil })
			return c, err
		},
	}
	return m
}

// Name is the machine's.
func (m *Machine) Name() string { return m.name }

// Gone is closed when the agent is out of reach, or was let go.
func (m *Machine) Gone() <-chan struct{} { return m.conn.Gone() }

// Close lets go of the agent, which then ends what it owns, and waits for what carries streams.
func (m *Machine) Close() error {
	err := m.conn.Close()
	m.streams.Wait()
	m.transport.CloseIdleConnections()
	return err
}

// Prepare implements machine.Machine.
func (m *Machine) Prepare(ctx context.Context, a machine.Ask) (machine.Part, error) {
	return m.opened(ctx, "/prepare", a)
}

// Open implements machine.Machine.
func (m *Machine) Open(ctx context.Context, lab string) (machine.Part, error) {
	return m.opened(ctx, "/open", lab)
}

func (m *Machine) opened(ctx context.Context, path string, q any) (machine.Part, error) {
	o, err := ask[rpc.Opened](ctx, m, path, rpc.Of{}, q)
	if err != nil {
		return nil, err
	}
	return &part{m: m, of: rpc.Of{Part: o.Part}, facts: o.Facts, nodes: map[string]*node{}}, nil
}

// List implements machine.Machine.
func (m *Machine) List(ctx context.Context) ([]machine.Found, error) {
	return ask[[]machine.Found](ctx, m, "/list", rpc.Of{}, rpc.Nothing{})
}

// Sweep implements machine.Machine.
func (m *Machine) Sweep(ctx context.Context) ([]string, error) {
	return ask[[]string](ctx, m, "/sweep", rpc.Of{}, rpc.Nothing{})
}

// Remove implements machine.Machine.
func (m *Machine) Remove(ctx context.Context, lab string) error {
	return tell(ctx, m, "/remove", rpc.Of{}, lab)
}

// lost is the error of an agent that does not answer any more.
func (m *Machine) lost(doing string, err error) error {
	if why := m.why(); why != "" {
		return fmt.Errorf("%s: %s: %w: %s (%w)", m.name, doing, ErrLost, why, err)
	}
	return fmt.Errorf("%s: %s: %w: %w", m.name, doing, ErrLost, err)
}
