package linkbench

import (
	"context"
	"errors"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/bench/tcpstream"
	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/topology"
)

// RTT is how far measured round trips are from those that were set, over all directed
// pairs of azure8.
type RTT struct {
	// Scale of the latencies: 1 is the full matrix (5X), 0.2 a fifth of it (X).
	Scale float64 `json:"scale"`
	// Beside says what else runs: nothing, busy (a loop for each core), tcp (one
	// unlimited stream on one of the links), or steal (one processor is taken away, Steal of
	// the time).
	Beside string  `json:"beside"`
	Steal  float64 `json:"steal,omitempty"`
	// StreamBPS is what that stream carried.
	StreamBPS float64 `json:"stream_bps,omitempty"`
	Pairs     int     `json:"pairs"`
	Samples   int     `json:"samples"`
	Lost      int     `json:"lost"`
	// Errors in ms: measured minus set, of the absolute values.
	ErrorMean float64 `json:"error_mean_ms"`
	ErrorP99  float64 `json:"error_p99_ms"`
	ErrorMax  float64 `json:"error_max_ms"`
	// SameLink is the errors on the link of the stream alone.
	SameLink *SameLink `json:"same_link,omitempty"`
	// LateP99 and LateMax are the emulator's own account, in ms, for one direction.
	LateP99 float64 `json:"late_p99_ms"`
	LateMax float64 `json:"late_max_ms"`
}

// SameLink is errors in ms on one link.
type SameLink struct {
	Samples   int     `json:"samples"`
	ErrorMean float64 `json:"error_mean_ms"`
	ErrorP99  float64 `json:"error_p99_ms"`
	ErrorMax  float64 `json:"error_max_ms"`
}

// echoBytes is the layer-3 size of the probes; they take time on links of little bandwidth.
const echoBytes = 84

func (b *bench) rtt(ctx context.Context) error {
	for _, scale := range []float64{0.2, 1} {
		for _, beside := range []string{"nothing", "busy", "tcp", "steal"} {
			if beside == "steal" && b.Steal == 0 {
				continue
			}
			b.Progress("round trips at scale " + format(scale) + " beside " + beside)
			r, err := b.rttBeside(ctx, scale, beside)
			if err != nil {
				return err
			}
			b.result.RTT = append(b.result.RTT, r)
		}
	}
	return nil
}

// azure makes the links of azure8 at a scale. Beside an unlimited stream the links have no
// bandwidth: a stream would fill the queue of one that has, and that delays as it should.
func (b *bench) azure(ctx context.Context, scale float64, limited bool) (*world, error) {
	t, err := topology.Load("azure8")
	if err != nil {
		return nil, err
	}
	t = topology.Scale(t, scale)
	index := map[string]int{}
	for i, n := range t.Nodes {
		index[n.Name] = i
	}
	var edges [][2]int
	var ab, ba []link.Quality
	for _, l := range t.Links {
		if !limited {
			l.AB.Bandwidth, l.BA.Bandwidth = 0, 0
		}
		edges = append(edges, [2]int{index[l.A], index[l.B]})
		ab, ba = append(ab, l.AB), append(ba, l.BA)
	}
	return b.newWorld(ctx, len(t.Nodes), edges, ab, ba)
}

func (b *bench) rttBeside(ctx context.Context, scale float64, beside string) (r RTT, err error) {
	w, err := b.azure(ctx, scale, beside != "tcp")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	r = RTT{Scale: scale, Beside: beside}
	switch beside {
	case "busy":
		stop, err := Occupy()
		if err != nil {
			return r, err
		}
		defer stop()
	case "steal":
		stop, err := rob(b.Thief, b.Steal)
		if err != nil {
			return r, err
		}
		defer stop()
		r.Steal = b.Steal
	case "tcp":
		s, err := tcpstream.Start(w.wires[0].a, w.wires[0].b)
		if err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, s.Stop()) }()
		if err := linger.For(ctx, pick(b, 4*time.Second, 2*time.Second)); err != nil { // past its slow start
			return r, err
		}
		mark := s.Mark()
		defer func() { r.StreamBPS = s.Since(mark) }()
	}
	if _, err := w.engine.Lateness(ctx, true); err != nil {
		return r, err
	}
	results, err := probe.MeasureRTT(ctx, pairs(w.wires), pick(b, 300, 40), pick(b, 50*time.Millisecond, 25*time.Millisecond))
	if err != nil {
		return r, err
	}
	late, err := w.engine.Lateness(ctx, false)
	if err != nil {
		return r, err
	}
	r.LateP99, r.LateMax = milliseconds(late.P99), milliseconds(late.Max)
	r.judge(w.wires, results)
	return r, nil
}

// judge compares round trips with what was set.
func (r *RTT) judge(wires []*wire, results []probe.RTTResult) {
	var all []time.Duration
	for i, got := range results {
		w := wires[i/2]
		want := w.ab.Latency + w.ba.Latency + Transmission(w.ab) + Transmission(w.ba)
		var errs []time.Duration
		for _, s := range got.Samples {
			errs = append(errs, (s - want).Abs())
		}
		r.Lost += got.Lost
		all = append(all, errs...)
		if r.Beside == "tcp" && i == 0 {
			s := summarise(errs)
			r.SameLink = &SameLink{len(errs), milliseconds(s.mean), milliseconds(s.p99), milliseconds(s.max)}
		}
	}
	s := summarise(all)
	r.Pairs, r.Samples = len(results), len(all)
	r.ErrorMean, r.ErrorP99, r.ErrorMax = milliseconds(s.mean), milliseconds(s.p99), milliseconds(s.max)
}

// Transmission is what a probe's packet takes on a link of limited bandwidth.
func Transmission(q link.Quality) time.Duration {
	if q.Bandwidth == 0 {
		return 0
	}
	return time.Duration(echoBytes * 8 * 1e9 / q.Bandwidth)
}
