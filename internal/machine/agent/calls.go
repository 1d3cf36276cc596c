package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/rootless"
	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/machine"
	"skerry/internal/machine/doctor"
	"skerry/internal/machine/host"
	"skerry/internal/machine/pathprobe"
	"skerry/internal/machine/rpc"
)

// exchange is one call and its response.
type exchange struct {
	of  rpc.CallTarget
	ask json.RawMessage
	in  io.Reader // the stream of the request
	end io.Closer // ends the reading of it
	w   http.ResponseWriter
}

type call func(ctx context.Context, s *server, x *exchange)

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.calls.Add(1)
	defer s.calls.Done()
	answer := calls[r.URL.Path]
	x := &exchange{w: w, end: r.Body}
	var request rpc.Request
	decoder := json.NewDecoder(r.Body)
	switch err := decoder.Decode(&request); {
	case answer == nil:
		x.answer(nil, fmt.Errorf("unknown call %s", r.URL.Path))
		return
	case err != nil:
		x.answer(nil, fmt.Errorf("decode request of %s: %w", r.URL.Path, err))
		return
	}
	x.of, x.ask = request.Target, request.Params
	rest := bufio.NewReader(io.MultiReader(decoder.Buffered(), r.Body))
	// The newline belongs to the JSON line. A call without a stream may omit it.
	if b, err := rest.Peek(1); err == nil && b[0] == '\n' {
		_, _ = rest.Discard(1)
	}
	x.in = rest
	answer(r.Context(), s, x)
}

// answer writes the response. It returns false if no stream follows.
func (x *exchange) answer(v any, err error) bool {
	response := rpc.Response{Error: rpc.NewFailure(err)}
	if err == nil {
		if response.Answer, err = json.Marshal(v); err != nil {
			response.Error = rpc.NewFailure(fmt.Errorf("encode response: %w", err))
		}
	}
	// A broken connection is reported by the caller.
	if json.NewEncoder(x.w).Encode(response) != nil || x.flush() != nil {
		return false
	}
	return response.Error == nil
}

func (x *exchange) flush() error { return http.NewResponseController(x.w).Flush() }

func decodeParams[Q any](x *exchange) (q Q, err error) {
	if len(x.ask) > 0 {
		err = json.Unmarshal(x.ask, &q)
	}
	return q, err
}

// newCall returns a call without streams: it finds the target and applies f to it.
func newCall[On, Q, A any](find func(s *server, of rpc.CallTarget) (On, error), f func(ctx context.Context, on On, q Q) (A, error)) call {
	return func(ctx context.Context, s *server, x *exchange) {
		var a A
		q, err := decodeParams[Q](x)
		if err == nil {
			var on On
			if on, err = find(s, x.of); err == nil {
				a, err = f(ctx, on, q)
			}
		}
		x.answer(a, err)
	}
}

// withoutResult adapts a function without a result.
func withoutResult[On, Q any](f func(ctx context.Context, on On, q Q) error) func(context.Context, On, Q) (rpc.Empty, error) {
	return func(ctx context.Context, on On, q Q) (rpc.Empty, error) { return rpc.Empty{}, f(ctx, on, q) }
}

// errNoPersistentLabs is returned for a lab without an owner if the agent made its own user namespace.
var errNoPersistentLabs = errors.New("skerry does not run as root there, so labs cannot outlive it")

// calls are all calls that an agent serves.
var calls = mergeCalls(machineCalls, probeCalls, partCalls, hostCalls, processCalls, fileCalls)

func mergeCalls(groups ...map[string]call) map[string]call {
	all := map[string]call{}
	for _, g := range groups {
		maps.Copy(all, g)
	}
	return all
}

type empty = rpc.Empty

func findServer(s *server, _ rpc.CallTarget) (*server, error)  { return s, nil }
func findPart(s *server, of rpc.CallTarget) (*part, error)     { return s.part(of) }
func findHost(s *server, of rpc.CallTarget) (host.Host, error) { return s.host(of) }

var machineCalls = map[string]call{
	"/hello": newCall(findServer, func(_ context.Context, _ *server, ask bool) (rpc.Hello, error) { return describeAgent(ask) }),
	"/clock": newCall(findServer, func(context.Context, *server, empty) (rpc.Timestamp, error) {
		return rpc.Timestamp{Now: time.Now().UnixNano()}, nil
	}),
	"/examine": newCall(findServer, func(ctx context.Context, s *server, _ empty) (doctor.Report, error) {
		return s.Examine(ctx)
	}),
	"/prepare": newCall(findServer, func(ctx context.Context, s *server, a machine.PartSpec) (rpc.OpenedPart, error) {
		if rootless.Inside() && !a.Owned {
			// The lab's namespaces would belong to a user namespace that the next agent cannot enter.
			return rpc.OpenedPart{}, advice.With(errNoPersistentLabs, "let it, by sudo: true for example; trials work without")
		}
		p, err := s.Machine.Prepare(ctx, a)
		if err != nil {
			return rpc.OpenedPart{}, err
		}
		return s.addPart(&part{Part: p, ends: true, owned: a.Owned}), nil
	}),
	"/open": newCall(findServer, func(ctx context.Context, s *server, lab string) (rpc.OpenedPart, error) {
		p, err := s.Machine.Open(ctx, lab)
		if err != nil {
			return rpc.OpenedPart{}, err
		}
		return s.addPart(&part{Part: p}), nil
	}),
	"/list": newCall(findServer, func(ctx context.Context, s *server, _ empty) ([]machine.PartStatus, error) {
		return s.Machine.List(ctx)
	}),
	"/sweep":  newCall(findServer, func(ctx context.Context, s *server, _ empty) ([]string, error) { return s.Machine.Sweep(ctx) }),
	"/remove": newCall(findServer, withoutResult(func(ctx context.Context, s *server, lab string) error { return s.Machine.Remove(ctx, lab) })),
}

var partCalls = map[string]call{
	"/part/facts":   newCall(findPart, func(_ context.Context, p *part, _ empty) (machine.Facts, error) { return p.Facts(), nil }),
	"/part/make":    newCall(findPart, withoutResult(func(ctx context.Context, p *part, n []machine.NodeSpec) error { return p.MakeNodes(ctx, n) })),
	"/part/name":    newCall(findPart, withoutResult(func(ctx context.Context, p *part, n []machine.NameRecord) error { return p.SetNames(ctx, n) })),
	"/part/resolve": newCall(findPart, withoutResult(func(ctx context.Context, p *part, a netip.Addr) error { return p.SetResolver(ctx, a) })),
	"/part/meet": newCall(findPart, func(ctx context.Context, p *part, m machine.EndpointSpec) (machine.Endpoint, error) {
		return p.OpenEndpoint(ctx, m)
	}),
	"/part/cross": newCall(findPart, withoutResult(func(ctx context.Context, p *part, c machine.PeerSet) error { return p.ConnectPeers(ctx, c) })),
	"/part/echo": newCall(findPart, func(ctx context.Context, p *part, e machine.RTTSpec) ([]probe.RTTResult, error) {
		return p.MeasureRTT(ctx, e)
	}),
	"/part/train": newCall(findPart, func(ctx context.Context, p *part, t machine.TrainSpec) (probe.TrainResult, error) {
		return p.MeasureTrain(ctx, t)
	}),
	"/part/link":  newCall(findPart, withoutResult(func(ctx context.Context, p *part, l []link.Spec) error { return p.MakeLinks(ctx, l) })),
	"/part/adopt": newCall(findPart, withoutResult(func(ctx context.Context, p *part, l []link.Spec) error { return p.AdoptLinks(ctx, l) })),
	"/part/set":   newCall(findPart, withoutResult(func(ctx context.Context, p *part, c []link.Change) error { return p.ShapeLinks(ctx, c) })),
	"/part/stats": newCall(findPart, func(ctx context.Context, p *part, ids []string) ([]link.Stats, error) {
		return p.LinkStats(ctx, ids...)
	}),
	"/part/lateness": newCall(findPart, func(ctx context.Context, p *part, reset bool) (link.Lateness, error) { return p.Lateness(ctx, reset) }),
	"/part/tunnel":   newCall(findPart, withoutResult(func(ctx context.Context, p *part, e []machine.TunnelEnd) error { return p.MakeTunnels(ctx, e) })),
	"/part/address":  newCall(findPart, withoutResult(func(ctx context.Context, p *part, d []machine.Device) error { return p.SetAddresses(ctx, d) })),
	"/part/route":    newCall(findPart, withoutResult(func(ctx context.Context, p *part, r []machine.Route) error { return p.AddRoutes(ctx, r) })),
	"/part/carrier": newCall(findPart, withoutResult(func(ctx context.Context, p *part, c rpc.CarrierRequest) error {
		return p.SetCarrier(ctx, c.Cable, c.Up)
	})),
	"/part/ways": newCall(findPart, func(ctx context.Context, p *part, w rpc.RouteRequest) ([]string, error) {
		return p.LookupRoutes(ctx, w.Node, w.To)
	}),
	"/part/tun": newCall(findPart, withoutResult(func(ctx context.Context, p *part, t machine.TUN) error { return p.MakeTUN(ctx, t) })),
	"/part/listening": newCall(findPart, func(ctx context.Context, p *part, l rpc.ListeningRequest) (bool, error) {
		return p.IsListening(ctx, l.Node, l.Port)
	}),
	"/part/mtu":      newCall(findPart, func(ctx context.Context, p *part, _ empty) (int, error) { return p.MTU(ctx) }),
	"/part/bridge":   newCall(findPart, withoutResult(func(ctx context.Context, p *part, b []machine.Bridge) error { return p.MakeBridges(ctx, b) })),
	"/part/rule":     newCall(findPart, withoutResult(func(ctx context.Context, p *part, r []machine.RuleSet) error { return p.SetRules(ctx, r) })),
	"/part/note/set": newCall(findPart, withoutResult(func(ctx context.Context, p *part, n json.RawMessage) error { return p.SetNote(ctx, n) })),
	"/part/note":     newCall(findPart, func(ctx context.Context, p *part, _ empty) (json.RawMessage, error) { return p.Note(ctx) }),
	"/part/keep":     newCall(findPart, withoutResult(commitPart)),
	"/part/lock":     lockPart,
	"/part/down":     newCall(findPart, withoutResult(endPart)),
	"/part/close":    newCall(findPart, withoutResult(closePart)),
	"/part/ended":    reportEnd,
}

// commitPart commits the part. A part without an owner then stays when the agent ends.
func commitPart(ctx context.Context, p *part, lab json.RawMessage) error {
	err := p.Commit(ctx, lab)
	if err == nil {
		p.setEnds(p.owned)
	}
	return err
}

// lockPart holds the lock until the call ends.
func lockPart(ctx context.Context, s *server, x *exchange) {
	p, err := s.part(x.of)
	if err == nil {
		err = p.Lock(ctx)
	}
	if err != nil {
		x.answer(nil, err)
		return
	}
	if x.answer(rpc.Empty{}, nil) {
		<-ctx.Done()
	}
	_ = p.Unlock() // closing what it locked: no caller is left to report to
}

// endPart completes even if the caller disconnects.
func endPart(ctx context.Context, p *part, _ empty) error {
	err := p.Down(context.WithoutCancel(ctx))
	if err == nil {
		p.setEnds(false)
	}
	return err
}

// closePart releases a part without ending it. An owned part then has no owner, as if its owner had died.
func closePart(_ context.Context, p *part, _ empty) error {
	p.mu.Lock()
	p.ends, p.closed = false, true
	p.mu.Unlock()
	return p.Close()
}

// reportEnd returns at once whether an emulator process exists. The response ends when that process ends.
func reportEnd(ctx context.Context, s *server, x *exchange) {
	p, err := s.part(x.of)
	if err != nil {
		x.answer(nil, err)
		return
	}
	gone := p.Ended()
	if !x.answer(gone != nil, nil) || gone == nil {
		return
	}
	select {
	case <-gone:
	case <-ctx.Done():
	}
}

var probeCalls = map[string]call{
	"/reach/listen": listenForProbes,
	"/reach/measure": newCall(findServer, func(ctx context.Context, _ *server, o pathprobe.Spec) (rpc.PathResult, error) {
		r, err := pathprobe.Measure(ctx, o)
		return rpc.PathResult{Result: r, Problem: rpc.NewFailure(err)}, nil
	}),
}

// listenForProbes returns a port and serves it until the call ends.
func listenForProbes(ctx context.Context, _ *server, x *exchange) {
	token, err := decodeParams[[16]byte](x)
	if err != nil {
		x.answer(nil, err)
		return
	}
	l, err := pathprobe.Listen(token)
	if err != nil {
		x.answer(nil, err)
		return
	}
	defer l.Close()
	if x.answer(l.Port(), nil) {
		<-ctx.Done()
	}
}
