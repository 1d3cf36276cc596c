// Package sample reads, once per second, the resource use of nodes, links, the emulator and the machine during a trial.
package sample

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/internal/record"
	"skerry/internal/topology/flavor"
)

const (
	EmulatorNode = "@emulator"
	TunnelNode   = "@wireguard"
	HostNode     = "@host"
)

// Traffic is layer-3 bytes by node, sent and received.
type Traffic struct {
	Tx, Rx map[string]uint64
}

// Sampler samples a lab. Run samples once per second.
type Sampler struct {
	Hosts []host.Host
	// Machines are the hosts' machines. Their figures are added up.
	Machines []Machine
	// Traffic reads the traffic of the links; nil for none.
	Traffic func(ctx context.Context) (Traffic, error)
	// FlavorState returns the state of a node whose flavor changes its quota; nil for none.
	FlavorState func(node string) (flavor.State, bool)

	last  map[string]reading
	since time.Time
}

// Machine is a machine with the lab's helper processes.
type Machine struct {
	Files files.System
	// Emulator is the process that forwards packets, 0 if the kernel does.
	Emulator int
	// Tunneller is the process that encrypts links, 0 if there is none.
	Tunneller int
}

type reading struct {
	usage  host.Usage
	rx, tx uint64
	steal  time.Duration
	// processes and self belong to the machine: the CPU time of all processes, and of this process.
	processes, self time.Duration
	// credits is the present balance, nil for a node without credits.
	credits *float64
}

// Run calls emit once per second with the use of every node, until ctx ends. T counts seconds since zero. Samples end
// where the driver's seconds end, so that the effect of an event does not appear before it: with samples from an
// arbitrary start, a node killed at 6.3 s could be idle in a row of second 5 that covers 5.9 s to 6.9 s. Run returns
// the first read error, or nil when ctx ended.
func (s *Sampler) Run(ctx context.Context, zero time.Time, emit func([]record.NodeSecond) error) error {
	if _, err := s.Sample(ctx, 0); err != nil {
		return err
	}
	timer := time.NewTimer(untilNext(time.Since(zero)))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			rows, err := s.Sample(ctx, lastCompleted(time.Since(zero)))
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

func untilNext(since time.Duration) time.Duration {
	return (since.Truncate(time.Second) + time.Second - since).Abs()
}

func lastCompleted(since time.Duration) int64 {
	return int64(since.Truncate(time.Second)/time.Second) - 1
}

// Sample reads everything and returns one row per node with its use since the previous call. The first call returns no
// rows.
func (s *Sampler) Sample(ctx context.Context, t int64) ([]record.NodeSecond, error) {
	next, err := s.readAll(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	last, elapsed := s.last, now.Sub(s.since).Seconds()
	s.last, s.since = next, now
	if last == nil || elapsed <= 0 {
		return nil, nil
	}
	// A late sample covers more than a second, so counters become rates.
	rate := func(bytes int64) int64 { return int64(math.Round(float64(bytes) / elapsed)) }
	rows := make([]record.NodeSecond, 0, len(next))
	var ours time.Duration // the trial's processes and this one
	for _, name := range s.names() {
		a, b := last[name], next[name]
		if name != HostNode {
			ours += b.usage.CPU - a.usage.CPU
		}
		throttled := b.usage.Throttled - a.usage.Throttled
		if name == HostNode { // the hypervisor throttles a machine
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

			ProcessorWait: (b.usage.Waits.Processor - a.usage.Waits.Processor).Seconds() / elapsed,
			DiskWait:      (b.usage.Waits.Disk - a.usage.Waits.Disk).Seconds() / elapsed,
		})
	}
	a, b := last[HostNode], next[HostNode]
	ours += b.self - a.self
	rows[len(rows)-1].Foreign = max(0, (b.processes-a.processes-ours).Seconds()/elapsed)
	return rows, nil
}

var processes = map[string]func(Machine) int{
	EmulatorNode: func(m Machine) int { return m.Emulator },
	TunnelNode:   func(m Machine) int { return m.Tunneller },
}

func (s *Sampler) names() []string {
	names := make([]string, 0, len(s.Hosts)+2)
	for _, h := range s.Hosts {
		names = append(names, h.Name())
	}
	for name, pid := range processes {
		if slices.ContainsFunc(s.Machines, func(m Machine) bool { return pid(m) != 0 }) {
			names = append(names, name)
		}
	}
	slices.Sort(names[len(s.Hosts):])
	return append(names, HostNode)
}

func (s *Sampler) readAll(ctx context.Context) (map[string]reading, error) {
	out := make(map[string]reading, len(s.Hosts)+2)
	var traffic Traffic
	if s.Traffic != nil {
		var err error
		if traffic, err = s.Traffic(ctx); err != nil {
			return nil, fmt.Errorf("sample link traffic: %w", err)
		}
	}
	usage, machines := make([]host.Usage, len(s.Hosts)), make([]map[string]reading, len(s.Machines))
	var all errgroup.Group // machines are read concurrently
	for i, h := range s.Hosts {
		all.Go(func() (err error) {
			if usage[i], err = h.Usage(); err != nil {
				return fmt.Errorf("sample node %s: %w", h.Name(), err)
			}
			return nil
		})
	}
	for i, m := range s.Machines {
		all.Go(func() (err error) {
			machines[i], err = m.readUsage(ctx)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	for i, h := range s.Hosts {
		r := reading{usage: usage[i], rx: traffic.Rx[h.Name()], tx: traffic.Tx[h.Name()]}
		if s.FlavorState != nil {
			if g, ok := s.FlavorState(h.Name()); ok {
				r.steal = g.Stolen
				if g.Credits >= 0 {
					r.credits = &g.Credits
				}
			}
		}
		out[h.Name()] = r
	}
	for _, m := range machines {
		for name, r := range m {
			out[name] = out[name].plus(r)
		}
	}
	return out, nil
}

func (m Machine) readUsage(ctx context.Context) (map[string]reading, error) {
	out := map[string]reading{}
	for name, pid := range processes {
		if pid(m) == 0 {
			continue
		}
		cpu, err := ReadProcessCPU(ctx, m.Files, pid(m))
		if err != nil {
			return nil, fmt.Errorf("sample %s: %w", name, err)
		}
		out[name] = reading{usage: host.Usage{CPU: cpu}}
	}
	used, err := ReadMachineUsage(ctx, m.Files)
	if err != nil {
		return nil, err
	}
	r := reading{usage: host.Usage{CPU: used.Busy, User: used.User, System: used.System}, steal: used.Steal, processes: used.Processes}
	if _, here := m.Files.(files.Local); here {
		if r.self, err = ReadProcessCPU(ctx, m.Files, os.Getpid()); err != nil {
			return nil, fmt.Errorf("sample this process: %w", err)
		}
	}
	out[HostNode] = r
	return out, nil
}

func (r reading) plus(x reading) reading {
	r.usage.CPU, r.usage.User, r.usage.System = r.usage.CPU+x.usage.CPU, r.usage.User+x.usage.User, r.usage.System+x.usage.System
	r.steal, r.processes, r.self = r.steal+x.steal, r.processes+x.processes, r.self+x.self
	return r
}

// clockTick is the unit of CPU times in /proc: USER_HZ, 100 on every Linux architecture that Go supports.
const clockTick = 10 * time.Millisecond

// MachineUsage is the CPU time of a machine since boot.
type MachineUsage struct {
	Busy   time.Duration // over all cores: user, nice, system, irq, softirq
	User   time.Duration // user and nice
	System time.Duration // system, irq and softirq
	Steal  time.Duration // stolen by the hypervisor
	// Processes is the part of Busy without interrupts, which handle the packets of all processes.
	Processes time.Duration
	// Cores is the number of online processors.
	Cores int
}

// ReadMachineUsage reads a machine's /proc/stat.
func ReadMachineUsage(ctx context.Context, on files.System) (MachineUsage, error) {
	text, err := files.Read(ctx, on, "/proc/stat")
	if err != nil {
		return MachineUsage{}, fmt.Errorf("read CPU times of the machine: %w", err)
	}
	return parseMachineUsage(text)
}

func parseMachineUsage(stat string) (MachineUsage, error) {
	sc := bufio.NewScanner(strings.NewReader(stat))
	var m *MachineUsage
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if m != nil && len(f) > 0 && strings.HasPrefix(f[0], "cpu") {
			m.Cores++
		}
		if len(f) < 9 || f[0] != "cpu" {
			continue
		}
		// user nice system idle iowait irq softirq steal
		var ticks [8]int64
		for i := range ticks {
			n, err := strconv.ParseInt(f[i+1], 10, 64)
			if err != nil {
				return MachineUsage{}, fmt.Errorf("read CPU times in %q: %w", sc.Text(), err)
			}
			ticks[i] = n
		}
		user, system := ticks[0]+ticks[1], ticks[2]+ticks[5]+ticks[6]
		m = &MachineUsage{
			Busy: time.Duration(user+system) * clockTick, User: time.Duration(user) * clockTick, System: time.Duration(system) * clockTick,
			Steal: time.Duration(ticks[7]) * clockTick, Processes: time.Duration(user+ticks[2]) * clockTick,
		}
	}
	if m != nil {
		return *m, nil
	}
	return MachineUsage{}, fmt.Errorf("read CPU times of the machine: no cpu line in /proc/stat")
}

// ReadProcessCPU reads the CPU time of a process with all its threads.
func ReadProcessCPU(ctx context.Context, on files.System, pid int) (time.Duration, error) {
	text, err := files.Read(ctx, on, fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read CPU time of process %d: %w", pid, err)
	}
	return parseProcessCPU(text)
}

func parseProcessCPU(stat string) (time.Duration, error) {
	// The second field is the program's name in brackets and may contain any character.
	_, rest, ok := cutLast(stat, ") ")
	f := strings.Fields(rest)
	if !ok || len(f) < 13 {
		return 0, fmt.Errorf("read CPU time of a process: unexpected %q", stat)
	}
	var total time.Duration
	for _, s := range f[11:13] { // utime, stime: fields 14 and 15
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU time of a process: %w", err)
		}
		total += time.Duration(n) * clockTick
	}
	return total, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
