package linkbench

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"skerry/internal/link/probe"
)

// Sparse is how far round trips are from those that were set where packets are few, so that
// processors sleep between them: above what a plain veth pair takes in the same run.
type Sparse struct {
	// Rate is the round trips a second and pair, over the Pairs nearest pairs of azure8 at sparseScale.
	Rate  float64 `json:"rate"`
	Pairs int     `json:"pairs"`
	// Beside is nothing or busy (a loop for each core).
	Beside string `json:"beside"`
	// Seen is by whom: kernel (timestamps of packets) or application (a program's clock).
	Seen    string `json:"seen"`
	Samples int    `json:"samples"`
	// VethMean and VethMax are as many round trips of the plain pair, as often, in ms.
	VethMean float64 `json:"veth_mean_ms"`
	VethMax  float64 `json:"veth_max_ms"`
	// ExtraMean and WorstPair are means of the links' round trips less what was set and less
	// VethMean, in ms: over all, and of the pair that is worst. ExtraP99 and ExtraMax are of single packets;
	// WorstAbove is by how much the worst of them is above the worst of the plain pair.
	ExtraMean  float64 `json:"extra_mean_ms"`
	WorstPair  float64 `json:"worst_pair_ms"`
	ExtraP99   float64 `json:"extra_p99_ms"`
	ExtraMax   float64 `json:"extra_max_ms"`
	WorstAbove float64 `json:"worst_above_ms"`
	// LateP50 and LateP99 are the emulator's own account, in ms, for one direction.
	LateP50 float64 `json:"late_p50_ms"`
	LateP99 float64 `json:"late_p99_ms"`
}

// sparseScale gives links of 1 to 40 ms one way.
const sparseScale = 0.37

// sparseRates are round trips a second and pair, and over how many pairs.
var sparseRates = []struct {
	rate  float64
	wires int
	count int
}{{1, 28, 10}, {20, 28, 100}, {1000, 1, 4000}}

func (b *bench) sparse(ctx context.Context) error {
	for _, beside := range []string{"nothing", "busy"} {
		for _, seen := range []string{"kernel", "application"} {
			for _, r := range sparseRates {
				b.Progress("sparse round trips, " + format(r.rate) + " a second, beside " + beside + ", seen by the " + seen)
				s := Sparse{Rate: r.rate, Pairs: r.wires, Beside: beside, Seen: seen}
				if err := b.sparseAt(ctx, &s, pick(b, r.count, max(3, r.count/4))); err != nil {
					return err
				}
				b.result.Sparse = append(b.result.Sparse, s)
			}
		}
	}
	return nil
}

func (b *bench) sparseAt(ctx context.Context, s *Sparse, count int) (err error) {
	w, err := b.azure(ctx, sparseScale, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	near, far, err := w.veth()
	if err != nil {
		return err
	}
	if s.Beside == "busy" {
		stop, err := Occupy()
		if err != nil {
			return err
		}
		defer stop()
	}
	interval := time.Duration(float64(time.Second) / s.Rate)
	slices.SortStableFunc(w.wires, func(a, b *wire) int { return cmp.Compare(a.ab.Latency, b.ab.Latency) })
	wires := w.wires[:s.Pairs]
	measure := stamped
	askers := 1
	if s.Seen == "application" { // one that waits for each answer has no next request meanwhile
		measure = ping
		askers += int(2 * wires[len(wires)-1].ab.Latency / interval)
	}
	wires = slices.Repeat(wires, askers)
	count, interval = max(1, count/askers), interval*time.Duration(askers)
	var forward []probe.Pair
	for _, x := range wires {
		forward = append(forward, probe.Pair{From: x.a, To: x.b})
	}
	plain, err := measure(ctx, slices.Repeat([]probe.Pair{{From: near, To: far}}, len(forward)), count, interval)
	if err != nil {
		return err
	}
	if _, err := w.engine.Lateness(ctx, true); err != nil {
		return err
	}
	got, err := measure(ctx, forward, count, interval)
	if err != nil {
		return err
	}
	late, err := w.engine.Lateness(ctx, false)
	if err != nil {
		return err
	}
	s.LateP50, s.LateP99 = milliseconds(late.P50), milliseconds(late.P99)
	s.judge(wires, slices.Concat(plain...), got)
	return nil
}

// stamped is ping by the kernel's timestamps of packets.
func stamped(ctx context.Context, pairs []probe.Pair, count int, interval time.Duration) ([][]time.Duration, error) {
	results, err := probe.MeasureRTT(ctx, pairs, count, interval)
	all := make([][]time.Duration, len(results))
	for i, r := range results {
		all[i] = r.Samples
	}
	return all, err
}

func (s *Sparse) judge(wires []*wire, plain []time.Duration, got [][]time.Duration) {
	veth := summarise(plain)
	s.VethMean, s.VethMax = milliseconds(veth.mean), milliseconds(veth.max)
	var all []time.Duration
	for i, samples := range got {
		var extra []time.Duration
		for _, took := range samples {
			extra = append(extra, took-wires[i].ab.Latency-wires[i].ba.Latency-veth.mean)
		}
		s.WorstPair = max(s.WorstPair, milliseconds(summarise(extra).mean))
		all = append(all, extra...)
	}
	x := summarise(all)
	s.Samples, s.ExtraMean, s.ExtraP99, s.ExtraMax = len(all), milliseconds(x.mean), milliseconds(x.p99), milliseconds(x.max)
	s.WorstAbove = milliseconds(x.max + veth.mean - veth.max)
}
