package sample

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/internal/record"
	"skerry/internal/topology/flavor"
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
	// Machine is the one that the emulator and the tunnels run on, and that is sampled.
	Machine files.System
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
	// processes and self are of the machine: what all processes used, and this one.
	processes, self time.Duration
	// credits is the balance now, nil for a node without.
	credits *float64
}

// Run calls emit once a second with what every node used in that second, until ctx
// ends. T counts seconds since zero, and a second is that of zero's clock: it ends where the
// driver's does, so that what an event did is not seen before it. Were samples a second after
// each other from whenever the first was taken, a node that is killed at 6.3 s would be idle in a
// row of second 5, which went from 5.9 s to 6.9 s. It returns the first error of reading, or nil
// when ctx ended.
func (s *Sampler) Run(ctx context.Context, zero time.Time, emit func([]record.NodeSecond) error) error {
	if _, err := s.Take(ctx, 0); err != nil {
		return err
	}
	timer := time.NewTimer(untilNext(time.Since(zero)))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			rows, err := s.Take(ctx, ended(time.Since(zero)))
			timer.Reset(untilNext(time.Since(zero)))
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

// untilNext is how long it is to the end of the second at hand.
func untilNext(since time.Duration) time.Duration {
	return (since.Truncate(time.Second) + time.Second - since).Abs()
}

// ended is the last second that is over.
func ended(since time.Duration) int64 { return int64(since.Truncate(time.Second)/time.Second) - 1 }

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
	// A sample that came late is of more than a second: what it counted is told as a rate.
	rate := func(bytes int64) int64 { return int64(math.Round(float64(bytes) / elapsed)) }
	rows := make([]record.NodeSecond, 0, len(next))
	var ours time.Duration // of the trial's processes, and of this one
	for _, name := range s.names() {
		a, b := last[name], next[name]
		if name != HostNode {
			ours += b.usage.CPU - a.usage.CPU
		}
		throttled := b.usage.Throttled - a.usage.Throttled
		if name == HostNode { // a machine is held back by its hypervisor
			throttled = b.steal - a.steal
		}
		rows = append(rows, record.NodeSecond{
			T: t, Node: name,
			CPU:        (b.usage.CPU - a.usage.CPU).Seconds() / elapsed,
			Throttled:  throttled.Seconds() / elapsed,
			Memory:     b.usage.Memory,
			ReadBytes:  rate(b.usage.ReadBytes - a.usage.ReadBytes),
			WroteBytes: rate(b.usage.WroteBytes - a.usage.WroteBytes),
			RxBytes:    rate(int64(b.rx - a.rx)),
			TxBytes:    rate(int64(b.tx - a.tx)),
			User:       (b.usage.User - a.usage.User).Seconds() / elapsed,
			System:     (b.usage.System - a.usage.System).Seconds() / elapsed,
			Steal:      (b.steal - a.steal).Seconds() / elapsed,
			Credits:    b.credits,
		})
	}
	a, b := last[HostNode], next[HostNode]
	ours += b.self - a.self
	rows[len(rows)-1].Foreign = max(0, (b.processes-a.processes-ours).Seconds()/elapsed)
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
		cpu, err := ProcessCPU(ctx, s.Machine, pid)
		if err != nil {
			return nil, fmt.Errorf("sample %s: %w", name, err)
		}
		out[name] = reading{usage: host.Usage{CPU: cpu}}
	}
	m, err := ReadMachine(ctx, s.Machine)
	if err != nil {
		return nil, err
	}
	self, err := ProcessCPU(ctx, files.Local{}, os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("sample this process: %w", err)
	}
	out[HostNode] = reading{usage: host.Usage{CPU: m.Busy, User: m.User, System: m.System}, steal: m.Steal, processes: m.Processes, self: self}
	return out, nil
}
