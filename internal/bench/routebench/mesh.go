package routebench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/lab"
	"skerry/internal/lab/overlay"
	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/machine/host"
)

const (
	// steadyFor is how long round trips must not change to count as steady.
	steadyFor = 3 * time.Second
	// steadyTimeout bounds the wait for that: overlays that never rest are measured as
	// they are then.
	steadyTimeout = 30 * time.Second
	// sameRTT is by how much a round trip varies without having changed.
	sameRTT = 2 * time.Millisecond
	// watch is how long calls are counted to see which links they take.
	watch = 500 * time.Millisecond
	// watches is how often they are, until they took one.
	watches = 20
)

// mesh is a lab under measurement.
type mesh struct {
	Options
	lab    *lab.Lab
	random *rand.Rand
}

// cpu is the share of a core that all nodes' processes use.
func (m *mesh) cpu(ctx context.Context) (float64, error) {
	used := func() (sum time.Duration, err error) {
		for _, h := range m.lab.Hosts() {
			u, err := h.Usage()
			if err != nil {
				return 0, err
			}
			sum += u.CPU
		}
		return sum, nil
	}
	before, err := used()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := linger.For(ctx, cpuTime); err != nil {
		return 0, err
	}
	after, err := used()
	return float64(after-before) / float64(time.Since(began)), err
}

// rtts measures the round trips between all nodes, 0 where none came back.
func (m *mesh) rtts(ctx context.Context) ([]time.Duration, error) {
	hosts := m.lab.Inside()
	var pairs []probe.Pair
	for i, a := range hosts {
		for _, b := range hosts[i+1:] {
			pairs = append(pairs, probe.Pair{From: a, To: b})
		}
	}
	got, err := probe.RTT(ctx, pairs, 1, 0)
	if err != nil {
		return nil, err
	}
	rtts := make([]time.Duration, len(got))
	for i, g := range got {
		rtts[i] = g.Median
	}
	return rtts, nil
}

// settle waits until round trips have not changed for a while, and returns them.
func (m *mesh) settle(ctx context.Context) error {
	_, _, err := m.steady(ctx)
	return err
}

// steady is settle; it tells when a round trip was last seen to change, too.
func (m *mesh) steady(ctx context.Context) (rtts []time.Duration, changed time.Time, err error) {
	began := time.Now()
	changed = began
	for time.Since(began) < steadyTimeout {
		asked := time.Now()
		got, err := m.rtts(ctx)
		if err != nil {
			return nil, changed, err
		}
		same := len(rtts) > 0
		for i := range rtts {
			if d := got[i] - rtts[i]; got[i] == 0 || d > sameRTT || d < -sameRTT {
				same = false
			}
		}
		if rtts = got; !same {
			changed = asked
		} else if time.Since(changed) > steadyFor {
			break
		}
		if err := linger.For(ctx, 100*time.Millisecond); err != nil {
			return nil, changed, err
		}
	}
	return rtts, changed, nil
}

// stretch is the mean over all pairs of round trip over the best possible one without a
// link.
func (m *mesh) stretch(rtts []time.Duration, without string) float64 {
	var names []string
	for _, h := range m.lab.Hosts() {
		names = append(names, h.Name())
	}
	var up []overlay.Link
	for _, l := range m.lab.Links() {
		if l.ID != without && !l.AB.Down && !l.BA.Down {
			up = append(up, overlay.Link{A: l.A, B: l.B, Latency: (l.AB.Latency + l.BA.Latency) / 2})
		}
	}
	ideal := overlay.ShortestRTTs(up)
	var sum float64
	n, k := 0, 0
	for i := range names {
		for j := i + 1; j < len(names); j++ {
			if best := ideal[names[i]][names[j]]; rtts[k] > 0 && best > 0 {
				sum += float64(rtts[k]) / float64(best)
				n++
			}
			k++
		}
	}
	return sum / float64(max(n, 1))
}

// fail lets a link fail that the packets between two random nodes take, and repairs it.
func (m *mesh) fail(ctx context.Context) (f Failure, err error) {
	hosts := m.lab.Inside()
	order := m.random.Perm(len(hosts))
	from, to := hosts[order[0]], hosts[order[1]]
	f.From, f.To = from.Name(), to.Name()
	calls, err := startEchoes(ctx, from, to)
	if err != nil {
		return f, err
	}
	defer func() {
		if calls != nil {
			_ = calls.stop() // the first error counts
		}
	}()
	if f.Link, err = m.used(ctx, from); err != nil {
		return f, err
	}
	when := time.Now()
	if err := m.set(ctx, f.Link, true); err != nil {
		return f, err
	}
	var healed time.Duration
	for !f.Healed && time.Since(when) < m.Heal {
		if err := linger.For(ctx, 20*time.Millisecond); err != nil {
			return f, err
		}
		healed, f.Healed, _ = calls.since(when)
	}
	f.HealMS = milliseconds(healed)
	rtts, changed, err := m.steady(ctx)
	if err != nil {
		return f, err
	}
	f.SteadyMS = milliseconds(max(changed.Sub(when), healed))
	f.Stretch = m.stretch(rtts, f.Link)
	_, _, f.Lost = calls.since(when)
	err = calls.stop()
	calls = nil
	if err != nil {
		return f, err
	}
	if err := m.set(ctx, f.Link, false); err != nil {
		return f, err
	}
	return f, m.settle(ctx)
}

// used is the link that calls from a node leave it by. On a machine that is short of processors, calls come late.
func (m *mesh) used(ctx context.Context, from host.Host) (string, error) {
	for range watches {
		if id, err := m.usedFor(ctx, from, watch); err != nil || id != "" {
			return id, err
		}
	}
	return "", fmt.Errorf("the calls from %s took no link within %v", from.Name(), watches*watch)
}

// usedFor is the link that most calls took that left a node in some time, "" when few did.
func (m *mesh) usedFor(ctx context.Context, from host.Host, d time.Duration) (string, error) {
	before, err := m.lab.Stats(ctx)
	if err != nil {
		return "", err
	}
	if err := linger.For(ctx, d); err != nil {
		return "", err
	}
	after, err := m.lab.Stats(ctx)
	if err != nil {
		return "", err
	}
	packets := make(map[string]link.Stats, len(before))
	for _, s := range before {
		packets[s.ID] = s
	}
	ends := make(map[string]lab.Link)
	for _, l := range m.lab.Links() {
		ends[l.ID] = l
	}
	var most uint64
	var id string
	for _, s := range after {
		n := s.AB.Packets - packets[s.ID].AB.Packets
		if ends[s.ID].B == from.Name() {
			n = s.BA.Packets - packets[s.ID].BA.Packets
		} else if ends[s.ID].A != from.Name() {
			continue
		}
		if n > most {
			most, id = n, s.ID
		}
	}
	if most < uint64(d/echoInterval)/3 {
		return "", nil
	}
	return id, nil
}

// set takes a link down or up.
func (m *mesh) set(ctx context.Context, id string, down bool) error {
	if m.Carrier {
		return m.lab.Carrier(id, !down)
	}
	for _, l := range m.lab.Links() {
		if l.ID == id {
			l.AB.Down, l.BA.Down = down, down
			return m.lab.Set(ctx, []link.Change{{ID: id, AB: &l.AB, BA: &l.BA}})
		}
	}
	return fmt.Errorf("no link %s", id)
}
