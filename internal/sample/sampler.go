package sample

import (
	"context"
	"fmt"
	"time"

	"skerry/internal/flavor"
	"skerry/internal/host"
	"skerry/internal/record"
)

// Names under which the emulator and the machine appear among the nodes.
const (
	EmulatorNode = "@emulator"
	TunnelNode   = "@wireguard"
	HostNode     = "@host"
)

// Traffic is layer-3 bytes by node, as senders and as receivers.
type Traffic struct {
	Tx, Rx map[string]uint64
}

// Sampler takes samples of a lab; Run takes one a second.
type Sampler struct {
	Hosts []host.Host
	// EmulatorPID is the process that moves packets, 0 where the kernel does.
	EmulatorPID int
	// TunnelPID is the process that encrypts what goes over links, 0 where there is none.
	TunnelPID int
	// Traffic reads what the links have carried; nil for no traffic.
	Traffic func(ctx context.Context) (Traffic, error)
	// Governed tells what a node whose flavor changes its quota is at; nil for none.
	Governed func(node string) (flavor.State, bool)

	last  map[string]reading
	since time.Time
}

type reading struct {
	usage  host.Usage
	rx, tx uint64
	steal  time.Duration
	// credits is the balance now, nil for a node without.
	credits *float64
}

// Run calls emit once a second with what every node used in that second, until ctx
// ends. T counts seconds since zero. It returns the first error of reading, or nil
// when ctx ended.
func (s *Sampler) Run(ctx context.Context, zero time.Time, emit func([]record.NodeSecond) error) error {
	if _, err := s.Take(ctx, 0); err != nil {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			rows, err := s.Take(ctx, int64(now.Sub(zero)/time.Second)-1) // the second that has ended
			if err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			if err := emit(rows); err != nil {
				return err
			}
		}
	}
}

// Take reads everything and returns a row per node with what was used since the call
// before; the first call returns none.
func (s *Sampler) Take(ctx context.Context, t int64) ([]record.NodeSecond, error) {
	next, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	last, elapsed := s.last, now.Sub(s.since).Seconds()
	s.last, s.since = next, now
	if last == nil || elapsed <= 0 {
		return nil, nil
	}
	rows := make([]record.NodeSecond, 0, len(next))
	for _, name := range s.names() {
		a, b := last[name], next[name]
		throttled := b.usage.Throttled - a.usage.Throttled
		if name == HostNode { // a machine is held back by its hypervisor
			throttled = b.steal - a.steal
		}
		rows = append(rows, record.NodeSecond{
			T: t, Node: name,
			CPU:        (b.usage.CPU - a.usage.CPU).Seconds() / elapsed,
			Throttled:  throttled.Seconds() / elapsed,
			Memory:     b.usage.Memory,
			ReadBytes:  b.usage.ReadBytes - a.usage.ReadBytes,
			WroteBytes: b.usage.WroteBytes - a.usage.WroteBytes,
			RxBytes:    int64(b.rx - a.rx),
			TxBytes:    int64(b.tx - a.tx),
			User:       (b.usage.User - a.usage.User).Seconds() / elapsed,
			System:     (b.usage.System - a.usage.System).Seconds() / elapsed,
			Steal:      (b.steal - a.steal).Seconds() / elapsed,
			Credits:    b.credits,
		})
	}
	return rows, nil
}

func (s *Sampler) names() []string {
	names := make([]string, 0, len(s.Hosts)+2)
	for _, h := range s.Hosts {
		names = append(names, h.Name())
	}
	if s.EmulatorPID != 0 {
		names = append(names, EmulatorNode)
	}
	if s.TunnelPID != 0 {
		names = append(names, TunnelNode)
	}
	return append(names, HostNode)
}

func (s *Sampler) read(ctx context.Context) (map[string]reading, error) {
	out := make(map[string]reading, len(s.Hosts)+2)
	var traffic Traffic
	if s.Traffic != nil {
		var err error
		if traffic, err = s.Traffic(ctx); err != nil {
			return nil, fmt.Errorf("sample the traffic of links: %w", err)
		}
	}
	for _, h := range s.Hosts {
		u, err := h.Usage()
		if err != nil {
			return nil, fmt.Errorf("sample node %s: %w", h.Name(), err)
		}
		r := reading{usage: u, rx: traffic.Rx[h.Name()], tx: traffic.Tx[h.Name()]}
		if s.Governed != nil {
			if g, ok := s.Governed(h.Name()); ok {
				r.steal = g.Stolen
				if g.Credits >= 0 {
					r.credits = &g.Credits
				}
			}
		}
		out[h.Name()] = r
	}
	for name, pid := range map[string]int{EmulatorNode: s.EmulatorPID, TunnelNode: s.TunnelPID} {
		if pid == 0 {
			continue
		}
		cpu, err := ProcessCPU(pid)
		if err != nil {
			return nil, fmt.Errorf("sample %s: %w", name, err)
		}
		out[name] = reading{usage: host.Usage{CPU: cpu}}
	}
	m, err := ReadMachine()
	if err != nil {
		return nil, err
	}
	out[HostNode] = reading{usage: host.Usage{CPU: m.Busy, User: m.User, System: m.System}, steal: m.Steal}
	return out, nil
}
