package tunnelbench

import (
	"context"
	"fmt"
	"time"

	"skerry/internal/bench/labbench"
	"skerry/internal/bench/tcpstream"
	"skerry/internal/evidence/stats"
	"skerry/internal/kernel/procfs"
	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/topology"
)

// slowStart is how long a stream runs before it is measured.
const slowStart = 3 * time.Second

// Pair is two nodes and an encrypted link.
func Pair(latency time.Duration) topology.Topology {
	q := link.Quality{Latency: latency}
	return topology.Topology{
		Name: "pair", Encryption: topology.WireGuard,
		Sites: []topology.Site{{Name: "a"}, {Name: "b"}},
		Nodes: []topology.Node{{Name: "a", Site: "a", Role: topology.Data}, {Name: "b", Site: "b", Role: topology.Data}},
		Links: []topology.Link{{ID: "a~b", A: "a", B: "b", AB: q, BA: q}},
	}
}

func (o Options) stream(ctx context.Context) (*Stream, error) {
	r := &Stream{LatencyMS: labbench.Milliseconds(o.Latency), Rounds: o.Rounds}
	err := o.within(ctx, Pair(o.Latency), func(l *lab.Lab, _ time.Time) error {
		var through, past, cpu, emulator []float64
		for i := range o.Rounds {
			o.Progress(fmt.Sprintf("one stream through a tunnel and past it, %d of %d", i+1, o.Rounds))
			x, y, err := l.TunnelEnds("a~b")
			if err != nil {
				return err
			}
			used := []*meter{newMeter(l.TunnelPID()), newMeter(l.EmulatorPID())}
			bps, err := tcpstream.Goodput(ctx, x, y, slowStart, time.Duration(o.Seconds)*time.Second)
			if err != nil {
				return err
			}
			through = append(through, bps)
			cpu, emulator = append(cpu, used[0].share()), append(emulator, used[1].share())
			if x, y, err = l.Ends("a~b"); err != nil {
				return err
			}
			if bps, err = tcpstream.Goodput(ctx, x, y, slowStart, time.Duration(o.Seconds)*time.Second); err != nil {
				return err
			}
			past = append(past, bps)
		}
		r.BPS, r.LinkBPS, r.CPU, r.EmulatorCPU = stats.Median(through), stats.Median(past), stats.Median(cpu), stats.Median(emulator)
		return nil
	})
	return r, err
}

// meter is what a process uses of the CPU.
type meter struct {
	pid   int
	began time.Time
	used  time.Duration
}

func newMeter(pid int) *meter {
	m := &meter{pid: pid, began: time.Now()}
	m.used = m.cpu()
	return m
}

// cpu is 0 of no process, and of one that ended.
func (m *meter) cpu() time.Duration {
	if m.pid == 0 {
		return 0
	}
	s, err := procfs.ReadStat(m.pid)
	if err != nil {
		return 0
	}
	return s.CPU
}

// share is what it used of one core since the meter was made.
func (m *meter) share() float64 {
	return float64(m.cpu()-m.used) / float64(time.Since(m.began))
}
