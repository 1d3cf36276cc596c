package agent

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/netip"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/rootless"
	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/machine"
	"skerry/internal/machine/doctor"
	"skerry/internal/machine/host"
	"skerry/internal/machine/rpc"
)

// errStays refuses a lab that outlives its agent, where that made its own user namespace.
var errStays = errors.New("skerry does not run as root there, where no lab can stay up")

// calls are all that an agent answers.
var calls = merged(machineCalls, reachCalls, partCalls, hostCalls, processCalls, fileCalls)

func merged(groups ...map[string]call) map[string]call {
	all := map[string]call{}
	for _, g := range groups {
		maps.Copy(all, g)
	}
	return all
}

type nothing = rpc.Nothing

func itself(s *server, _ rpc.Of) (*server, error)    { return s, nil }
func ofPart(s *server, of rpc.Of) (*part, error)     { return s.part(of) }
func ofHost(s *server, of rpc.Of) (host.Host, error) { return s.host(of) }

var machineCalls = map[string]call{
	"/hello": plain(itself, func(_ context.Context, _ *server, ask bool) (rpc.Hello, error) { return hello(ask) }),
	"/clock": plain(itself, func(context.Context, *server, nothing) (rpc.Moment, error) {
		return rpc.Moment{Now: time.Now().UnixNano()}, nil
	}),
	"/examine": plain(itself, func(ctx context.Context, s *server, _ nothing) (doctor.Report, error) {
		return s.Examine(ctx)
	}),
	"/prepare": plain(itself, func(ctx context.Context, s *server, a machine.Ask) (rpc.Opened, error) {
		if rootless.Inside() && !a.Owned {
			// Its namespaces would be those of a user namespace that the next agent is not in.
			return rpc.Opened{}, advice.With(errStays, "let it, by sudo: true for example; trials work without")
		}
		p, err := s.Machine.Prepare(ctx, a)
		if err != nil {
			return rpc.Opened{}, err
		}
		return s.add(&part{Part: p, ends: true, owned: a.Owned}), nil
	}),
	"/open": plain(itself, func(ctx context.Context, s *server, lab string) (rpc.Opened, error) {
		p, err := s.Machine.Open(ctx, lab)
		if err != nil {
			return rpc.Opened{}, err
		}
		return s.add(&part{Part: p}), nil
	}),
	"/list":   plain(itself, func(ctx context.Context, s *server, _ nothing) ([]machine.Found, error) { return s.Machine.List(ctx) }),
	"/sweep":  plain(itself, func(ctx context.Context, s *server, _ nothing) ([]string, error) { return s.Machine.Sweep(ctx) }),
	"/remove": plain(itself, told(func(ctx context.Context, s *server, lab string) error { return s.Machine.Remove(ctx, lab) })),
}

var partCalls = map[string]call{
	"/part/facts":    plain(ofPart, func(_ context.Context, p *part, _ nothing) (machine.Facts, error) { return p.Facts(), nil }),
	"/part/make":     plain(ofPart, told(func(ctx context.Context, p *part, n []machine.Node) error { return p.Make(ctx, n) })),
	"/part/name":     plain(ofPart, told(func(ctx context.Context, p *part, n []machine.Named) error { return p.Name(ctx, n) })),
	"/part/resolve":  plain(ofPart, told(func(ctx context.Context, p *part, a netip.Addr) error { return p.Resolve(ctx, a) })),
	"/part/meet":     plain(ofPart, func(ctx context.Context, p *part, m machine.Meeting) (machine.Met, error) { return p.Meet(ctx, m) }),
	"/part/cross":    plain(ofPart, told(func(ctx context.Context, p *part, c machine.Crossing) error { return p.Cross(ctx, c) })),
	"/part/echo":     plain(ofPart, func(ctx context.Context, p *part, e machine.Echoes) ([]probe.RTTResult, error) { return p.Echo(ctx, e) }),
	"/part/train":    plain(ofPart, func(ctx context.Context, p *part, t machine.Train) (probe.TrainResult, error) { return p.Train(ctx, t) }),
	"/part/link":     plain(ofPart, told(func(ctx context.Context, p *part, l []link.Spec) error { return p.Link(ctx, l) })),
	"/part/adopt":    plain(ofPart, told(func(ctx context.Context, p *part, l []link.Spec) error { return p.Adopt(ctx, l) })),
	"/part/set":      plain(ofPart, told(func(ctx context.Context, p *part, c []link.Change) error { return p.Set(ctx, c) })),
	"/part/stats":    plain(ofPart, func(ctx context.Context, p *part, ids []string) ([]link.Stats, error) { return p.Stats(ctx, ids...) }),
	"/part/lateness": plain(ofPart, func(ctx context.Context, p *part, reset bool) (link.Lateness, error) { return p.Lateness(ctx, reset) }),
	"/part/tunnel":   plain(ofPart, told(func(ctx context.Context, p *part, e []machine.TunnelEnd) error { return p.Tunnel(ctx, e) })),
	"/part/address":  plain(ofPart, told(func(ctx context.Context, p *part, d []machine.Device) error { return p.Address(ctx, d) })),
	"/part/route":    plain(ofPart, told(func(ctx context.Context, p *part, r []machine.Route) error { return p.Route(ctx, r) })),
	"/part/carrier":  plain(ofPart, told(func(ctx context.Context, p *part, c rpc.Carrier) error { return p.Carrier(ctx, c.Cable, c.Up) })),
	"/part/ways":     plain(ofPart, func(ctx context.Context, p *part, w rpc.Ways) ([]string, error) { return p.Ways(ctx, w.Node, w.To) }),
	"/part/tun":      plain(ofPart, told(func(ctx context.Context, p *part, t machine.TUN) error { return p.TUN(ctx, t) })),
	"/part/listening": plain(ofPart, func(ctx context.Context, p *part, l rpc.Listening) (bool, error) {
		return p.Listening(ctx, l.Node, l.Port)
	}),
	"/part/mtu":      plain(ofPart, func(ctx context.Context, p *part, _ nothing) (int, error) { return p.MTU(ctx) }),
	"/part/bridge":   plain(ofPart, told(func(ctx context.Context, p *part, b []machine.Bridge) error { return p.Bridge(ctx, b) })),
	"/part/rule":     plain(ofPart, told(func(ctx context.Context, p *part, r []machine.Rules) error { return p.Rule(ctx, r) })),
	"/part/note/set": plain(ofPart, told(func(ctx context.Context, p *part, n json.RawMessage) error { return p.SetNote(ctx, n) })),
	"/part/note":     plain(ofPart, func(ctx context.Context, p *part, _ nothing) (json.RawMessage, error) { return p.Note(ctx) }),
	"/part/keep":     plain(ofPart, told(keep)),
	"/part/lock":     lock,
	"/part/down":     plain(ofPart, told(down)),
	"/part/close":    plain(ofPart, told(letGo)),
	"/part/ended":    ended,
}

// keep has a part without an owner stay when the agent ends.
func keep(ctx context.Context, p *part, lab json.RawMessage) error {
	err := p.Keep(ctx, lab)
	if err == nil {
		p.set(p.owned)
	}
	return err
}

// lock holds the lock for as long as its answer lasts.
func lock(ctx context.Context, s *server, x *exchange) {
	p, err := s.part(x.of)
	if err == nil {
		err = p.Lock(ctx)
	}
	if err != nil {
		x.answer(nil, err)
		return
	}
	if x.answer(rpc.Nothing{}, nil) {
		<-ctx.Done()
	}
	_ = p.Unlock() // closing what it locked: nobody is left to be told
}

// down is finished once it is begun, whether or not who asked is still there.
func down(ctx context.Context, p *part, _ nothing) error {
	err := p.Down(context.WithoutCancel(ctx))
	if err == nil {
		p.set(false)
	}
	return err
}

// letGo lets go of a part without ending it. One that is owned is then nobody's, as if its owner had
// died.
func letGo(_ context.Context, p *part, _ nothing) error {
	p.mu.Lock()
	p.ends, p.closed = false, true
	p.mu.Unlock()
	return p.Close()
}

// ended answers at once whether a process moves packets, and then, by its end, that it has ended.
func ended(ctx context.Context, s *server, x *exchange) {
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
