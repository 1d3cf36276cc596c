// Package remote is a machine that is asked over a connection to an agent on it. It keeps the
// contract of package machine; its nodes cannot be entered.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"skerry/internal/machine"
	"skerry/internal/machine/doctor"
	"skerry/internal/machine/pathprobe"
	"skerry/internal/machine/rpc"
)

// ErrLost says that a machine is out of reach: its agent has ended, or what carried it.
var ErrLost = errors.New("the machine is out of reach")

// Machine is a machine with an agent.
type Machine struct {
	name string
	// why says what the carrier complained of.
	stderr    func() string
	conn      *rpc.Conn
	transport *http.Transport
	streams   sync.WaitGroup // of goroutines that carry what processes and connections say
	ahead     atomic.Int64   // ns that the machine's clock is ahead, as last measured
	kernel    string         // its release, of Hello
}

var _ machine.Machine = (*Machine)(nil)

// New asks the agent at the other end of a connection that has said its greeting. Errors begin
// with the machine's name; why, which may be nil, adds what is known when the agent is lost.
func New(name string, conn *rpc.Conn, why func() string) *Machine {
	if why == nil {
		why = func() string { return "" }
	}
	m := &Machine{name: name, conn: conn, stderr: why}
	var once sync.Once
	m.transport = &http.Transport{
		Protocols: rpc.Protocols(), HTTP2: rpc.HTTP2Config(), DisableCompression: true,
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

// Closed is closed when the agent is out of reach, or was let go.
func (m *Machine) Closed() <-chan struct{} { return m.conn.Closed() }

// Close lets go of the agent, which then ends what it owns, and waits for what carries streams.
func (m *Machine) Close() error {
	err := m.conn.Close()
	m.streams.Wait()
	m.transport.CloseIdleConnections()
	return err
}

// Prepare implements machine.Machine.
func (m *Machine) Prepare(ctx context.Context, a machine.PartSpec) (machine.Part, error) {
	return m.openPart(ctx, "/prepare", a)
}

// Open implements machine.Machine.
func (m *Machine) Open(ctx context.Context, lab string) (machine.Part, error) {
	return m.openPart(ctx, "/open", lab)
}

func (m *Machine) openPart(ctx context.Context, path string, q any) (machine.Part, error) {
	o, err := callResult[rpc.OpenedPart](ctx, m, path, rpc.Target{}, q)
	if err != nil {
		return nil, err
	}
	return &part{m: m, of: rpc.Target{Part: o.Part}, facts: o.Facts, nodes: map[string]*node{}}, nil
}

// List implements machine.Machine.
func (m *Machine) List(ctx context.Context) ([]machine.PartStatus, error) {
	return callResult[[]machine.PartStatus](ctx, m, "/list", rpc.Target{}, rpc.Empty{})
}

// Sweep implements machine.Machine.
func (m *Machine) Sweep(ctx context.Context) ([]string, error) {
	return callResult[[]string](ctx, m, "/sweep", rpc.Target{}, rpc.Empty{})
}

// Remove implements machine.Machine.
func (m *Machine) Remove(ctx context.Context, lab string) error {
	return callEmpty(ctx, m, "/remove", rpc.Target{}, lab)
}

// lostError is the error of an agent that does not answer any more.
func (m *Machine) lostError(doing string, err error) error {
	if why := m.stderr(); why != "" {
		return fmt.Errorf("%s: %s: %w: %s (%w)", m.name, doing, ErrLost, why, err)
	}
	return fmt.Errorf("%s: %s: %w: %w", m.name, doing, ErrLost, err)
}

// Hello is what the agent says of itself, with its program's checksum where that is asked for.
func (m *Machine) Hello(ctx context.Context, program bool) (rpc.Hello, error) {
	h, err := callResult[rpc.Hello](ctx, m, "/hello", rpc.Target{}, program)
	if err == nil {
		m.kernel = h.Kernel
	}
	return h, err
}

// Examine is what `skerry doctor` says there.
func (m *Machine) Examine(ctx context.Context) (doctor.Report, error) {
	return callResult[doctor.Report](ctx, m, "/examine", rpc.Target{}, rpc.Empty{})
}

// Clock asks for the time so many times, and believes the answer that was back soonest: its offset may
// be wrong by half the round trip. What the machine's nodes are asked for afterwards goes by it.
//
//	here   sent ───────────── back      the answer was given between: were it given right
//	                  now                after sending, or right before it was back, the
//	there  ────────── ▲ ─────            offset would be half the round trip more or less
//
// (D. L. Mills, "Internet time synchronization: the Network Time Protocol", 1991, section 4.)
func (m *Machine) Clock(ctx context.Context, times int) (machine.Clock, error) {
	best := machine.Clock{Uncertainty: -1}
	for range times {
		sent := time.Now()
		there, err := callResult[rpc.Timestamp](ctx, m, "/clock", rpc.Target{}, rpc.Empty{})
		if err != nil {
			return best, err
		}
		trip := time.Since(sent) // by the monotonic clock
		if best.Uncertainty < 0 || trip/2 < best.Uncertainty {
			best = machine.Clock{Offset: time.Unix(0, there.Now).Sub(sent.Add(trip / 2)), Uncertainty: trip / 2}
		}
	}
	m.ahead.Store(int64(best.Offset))
	return best, nil
}

// ListenForProbes has the machine answer measurements until stop is called.
func (m *Machine) ListenForProbes(ctx context.Context, token [16]byte) (port int, stop func(), err error) {
	life, end := context.WithCancel(ctx)
	a, err := m.beginCall(life, "/reach/listen", rpc.Target{}, token, nil)
	if err == nil {
		err = json.Unmarshal(a.first, &port)
	}
	if err != nil {
		end()
		return 0, nil, err
	}
	return port, func() { end(); a.Close() }, nil
}

// MeasurePath measures the way from the machine to where another is Reachable.
func (m *Machine) MeasurePath(ctx context.Context, o pathprobe.Spec) (pathprobe.Result, error) {
	r, err := callResult[rpc.PathResult](ctx, m, "/reach/measure", rpc.Target{}, o)
	if err != nil {
		return r.Result, err
	}
	return r.Result, errors.Join(r.Problem.Err())
}
