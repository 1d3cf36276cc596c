// Package remote implements machine.Machine through an agent on another machine. Its nodes are not LocalHosts.
package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"skerry/internal/machine"
	"skerry/internal/machine/doctor"
	"skerry/internal/machine/pathprobe"
	"skerry/internal/machine/rpc"
)

// ErrLost is returned if the agent or the transport has ended.
var ErrLost = errors.New("the machine is out of reach")

// Machine implements machine.Machine through an agent.
type Machine struct {
	name string
	// stderr returns the transport's error output.
	stderr    func() string
	conn      *rpc.Conn
	transport *http.Transport
	streams   sync.WaitGroup // of goroutines that carry what processes and connections say
	ahead     atomic.Int64   // ns that the machine's clock is ahead, as last measured
	kernel    string         // its release, of Hello
}

var _ machine.Machine = (*Machine)(nil)

// New returns the machine behind a connection whose greeting has been read. Errors begin with the machine's name; why,
// which may be nil, returns details if the agent is lost.
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

func (m *Machine) Name() string { return m.name }

// Closed is closed when the agent is lost or released.
func (m *Machine) Closed() <-chan struct{} { return m.conn.Closed() }

// Close releases the agent, which then removes everything that it owns, and waits for open streams.
func (m *Machine) Close() error {
	err := m.conn.Close()
	m.streams.Wait()
	m.transport.CloseIdleConnections()
	return err
}

func (m *Machine) Prepare(ctx context.Context, a machine.PartSpec) (machine.Part, error) {
	return m.openPart(ctx, "Prepare", a)
}

func (m *Machine) Open(ctx context.Context, lab string) (machine.Part, error) {
	return m.openPart(ctx, "Open", lab)
}

func (m *Machine) openPart(ctx context.Context, method string, param any) (machine.Part, error) {
	o, err := callResult[rpc.OpenedPart](ctx, m, "/machine/"+method, rpc.CallTarget{}, param)
	if err != nil {
		return nil, err
	}
	return &part{m: m, of: rpc.CallTarget{Part: o.Part}, facts: o.Facts, nodes: map[string]*node{}}, nil
}

func (m *Machine) List(ctx context.Context) ([]machine.PartStatus, error) {
	return callResult[[]machine.PartStatus](ctx, m, "/machine/List", rpc.CallTarget{})
}

func (m *Machine) Sweep(ctx context.Context) ([]string, error) {
	return callResult[[]string](ctx, m, "/machine/Sweep", rpc.CallTarget{})
}

func (m *Machine) Remove(ctx context.Context, lab string) error {
	return callEmpty(ctx, m, "/machine/Remove", rpc.CallTarget{}, lab)
}

// lostError returns the error of an agent that no longer responds.
func (m *Machine) lostError(doing string, err error) error {
	if why := m.stderr(); why != "" {
		return fmt.Errorf("%s: %s: %w: %s (%w)", m.name, doing, ErrLost, why, err)
	}
	return fmt.Errorf("%s: %s: %w: %w", m.name, doing, ErrLost, err)
}

// Hello returns the agent's self-description, with its program's checksum if requested.
func (m *Machine) Hello(ctx context.Context, program bool) (rpc.Hello, error) {
	h, err := callResult[rpc.Hello](ctx, m, "/machine/Hello", rpc.CallTarget{}, program)
	if err == nil {
		m.kernel = h.Kernel
	}
	return h, err
}

// Examine returns the machine's `skerry doctor` report.
func (m *Machine) Examine(ctx context.Context) (doctor.Report, error) {
	return callResult[doctor.Report](ctx, m, "/machine/Examine", rpc.CallTarget{})
}

// clockProbes is the number of readings of a machine's clock.
const clockProbes = 20

// Clock reads the machine's clock several times and uses the reading with the shortest round trip, whose offset is wrong by
// at most half of it. The result also becomes the ClockOffset of the machine's nodes.
//
//	here   sent ───────────── back      the answer was given between: were it given right
//	                  now                after sending, or right before it was back, the
//	there  ────────── ▲ ─────            offset would be half the round trip more or less
//
// (D. L. Mills, "Internet time synchronization: the Network Time Protocol", 1991, section 4.)
func (m *Machine) Clock(ctx context.Context) (machine.Clock, error) {
	best := machine.Clock{Uncertainty: -1}
	for range clockProbes {
		sent := time.Now()
		there, err := callResult[int64](ctx, m, "/machine/Clock", rpc.CallTarget{})
		if err != nil {
			return best, err
		}
		trip := time.Since(sent) // by the monotonic clock
		if best.Uncertainty < 0 || trip/2 < best.Uncertainty {
			best = machine.Clock{Offset: time.Unix(0, there).Sub(sent.Add(trip / 2)), Uncertainty: trip / 2}
		}
	}
	m.ahead.Store(int64(best.Offset))
	return best, nil
}

// ListenForProbes makes the machine answer measurements until stop is called.
func (m *Machine) ListenForProbes(ctx context.Context, token [16]byte) (port int, stop func(), err error) {
	life, end := context.WithCancel(ctx)
	a, err := m.beginCall(life, "/machine/ListenForProbes", rpc.CallTarget{}, nil, token)
	if err == nil {
		err = json.Unmarshal(a.first, &port)
	}
	if err != nil {
		end()
		return 0, nil, err
	}
	return port, func() { end(); a.Close() }, nil
}

// MeasurePath measures the path from the machine to another machine's listener.
func (m *Machine) MeasurePath(ctx context.Context, o pathprobe.Spec) (pathprobe.Result, error) {
	r, err := callResult[rpc.PathResult](ctx, m, "/machine/MeasurePath", rpc.CallTarget{}, o)
	if err != nil {
		return r.Result, err
	}
	return r.Result, errors.Join(r.Problem.Err())
}

// openCall is the start of a response and the stream that follows.
type openCall struct {
	first    json.RawMessage
	rest     *bufio.Reader
	response *http.Response
}

func (a *openCall) Close() error { return a.response.Body.Close() }

// beginCall sends a request, with a stream unless nil, and returns when the response has begun.
func (m *Machine) beginCall(ctx context.Context, path string, of rpc.CallTarget, stream io.Reader, params ...any) (*openCall, error) {
	doing := strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", " ")
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", m.name, doing, err)
	}
	request, err := m.newRequest(ctx, path, rpc.Request[any]{Target: of, Params: params}, stream)
	if err != nil {
		return nil, fmt.Errorf("%s: encode request %s: %w", m.name, doing, err)
	}
	response, err := m.transport.RoundTrip(request)
	if err != nil {
		return nil, m.callError(ctx, doing, err)
	}
	a := &openCall{response: response}
	var begun rpc.Response
	decoder := json.NewDecoder(response.Body)
	if err := decoder.Decode(&begun); err != nil {
		a.Close()
		return nil, m.callError(ctx, doing, err)
	}
	if err := begun.Error.Err(); err != nil {
		a.Close()
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	a.first, a.rest = begun.Answer, bufio.NewReader(io.MultiReader(decoder.Buffered(), response.Body))
	return a, nil
}

func (m *Machine) newRequest(ctx context.Context, path string, request rpc.Request[any], stream io.Reader) (*http.Request, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	var body io.Reader = bytes.NewReader(append(text, '\n'))
	switch s := stream.(type) {
	case nil:
	case io.ReadCloser: // which the end of the call closes, so that no caller waits for it
		body = &prefixedStream{io.MultiReader(body, s), s}
	default:
		body = io.MultiReader(body, s)
	}
	return http.NewRequestWithContext(ctx, http.MethodPost, "http://agent"+path, body)
}

// prefixedStream prepends bytes to a stream.
type prefixedStream struct {
	io.Reader
	io.Closer
}

// callError returns the error of a call without a response.
func (m *Machine) callError(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %s: %w", m.name, doing, ctx.Err())
	}
	return m.lostError(doing, err)
}

// skipNewline skips the newline after the response's first value.
func (a *openCall) skipNewline() error {
	b, err := a.rest.ReadByte()
	if err == nil && b != '\n' {
		err = errors.New("malformed response: stream does not begin with a newline")
	}
	return err
}

// callResult makes a call without streams.
func callResult[A any](ctx context.Context, m *Machine, path string, of rpc.CallTarget, params ...any) (a A, err error) {
	got, err := m.beginCall(ctx, path, of, nil, params...)
	if err != nil {
		return a, err
	}
	defer got.Close()
	if err := json.Unmarshal(got.first, &a); err != nil {
		return a, fmt.Errorf("%s: decode response of %s: %w", m.name, path, err)
	}
	return a, nil
}

// callEmpty makes a call without a result.
func callEmpty(ctx context.Context, m *Machine, path string, of rpc.CallTarget, params ...any) error {
	_, err := callResult[rpc.Empty](ctx, m, path, of, params...)
	return err
}
