// Package netprofile is what was measured between machines over a time, and what a topology and a trace
// make of that, so that a lab on one machine is a copy of them: round trips with their distribution,
// loss, rates each way. It is pure data and computes.
//
//	round trips ─► shape: how far, how much jitter of which distribution ─► topology.yaml
//	            └► second by second: how far, how much is lost ───────────► trace.csv
package netprofile

import (
	"errors"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"skerry/internal/link"
)

// ErrNothing says that nothing was measured that a topology could be made of.
var ErrNothing = errors.New("no two machines have answered each other")

// Portrait is what was measured.
type Portrait struct {
	Began time.Time `json:"began"`
	// Seconds are for how long round trips were measured, EveryMS how often.
	Seconds  float64   `json:"seconds"`
	EveryMS  float64   `json:"every_ms"`
	Machines []Machine `json:"machines"`
	Pairs    []Pair    `json:"pairs"`
}

// Machine is one of the machines.
type Machine struct {
	Name string `json:"name"`
	Site string `json:"site,omitempty"`
	// Problem says why nothing was measured from or to it.
	Problem string `json:"problem,omitempty"`
}

// Pair is what was found between two machines.
type Pair struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Problem string `json:"problem,omitempty"`
	Sent    int    `json:"sent"`
	Lost    int    `json:"lost"`
	// RTT are the round trips' quantiles, Shape what they are like.
	RTT   Quantiles `json:"rtt_ms"`
	Shape Shape     `json:"shape"`
	// There and Back are what TCP streams got together, in bit/s of IP packets, 0 where that is not known.
	There int64 `json:"there_bps,omitempty"`
	Back  int64 `json:"back_bps,omitempty"`

	course []time.Duration // 0 for those that were lost
}

// Quantiles of round trips, in ms.
type Quantiles struct {
	Min float64 `json:"min"`
	P5  float64 `json:"p5"`
	P25 float64 `json:"p25"`
	P50 float64 `json:"p50"`
	P75 float64 `json:"p75"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Shape is what a link is asked for so that its round trips are distributed as those that were measured.
type Shape struct {
	// RTTMS is the round trip, JitterMS that of each way.
	RTTMS        float64           `json:"rtt_ms"`
	JitterMS     float64           `json:"jitter_ms"`
	Distribution link.Distribution `json:"distribution,omitempty"`
	// Loss of each way, 0 to 1: what is lost on either is no answer.
	Loss float64 `json:"loss,omitempty"`
}

// Window is what a trace's rows are about.
const Window = time.Second

// Take fills in what a course of probes says, one sent every so often; round trips are 0 where the probe
// was lost.
func (p *Pair) Take(course []time.Duration) {
	p.course, p.Sent = course, len(course)
	trips := answered(course)
	p.Lost = p.Sent - len(trips)
	if len(trips) == 0 {
		return
	}
	at := func(q float64) float64 { return stat.Quantile(q, stat.Empirical, trips, nil) }
	p.RTT = Quantiles{Min: trips[0], P5: at(0.05), P25: at(0.25), P50: at(0.5), P75: at(0.75), P95: at(0.95), P99: at(0.99), Max: trips[len(trips)-1]}
	p.Shape = fit(trips)
	p.Shape.Loss = each(p.Lost, p.Sent)
}

// Steady leaves out of the pair's jitter what a trace tells second by second: the shape is that within
// windows.
func (p *Pair) Steady(every time.Duration) {
	var within []float64
	for _, w := range windows(p.course, every) {
		trips := answered(w)
		for _, x := range trips {
			within = append(within, x-median(trips)+p.RTT.P50)
		}
	}
	if len(within) == 0 {
		return
	}
	slices.Sort(within)
	loss := p.Shape.Loss
	p.Shape = fit(within)
	p.Shape.Loss = loss
}

// windows cuts a course into stretches of a Window each.
func windows(course []time.Duration, every time.Duration) [][]time.Duration {
	return slices.Collect(slices.Chunk(course, max(1, int(Window/every))))
}

// answered are the round trips in ms, sorted.
func answered(course []time.Duration) []float64 {
	trips := make([]float64, 0, len(course))
	for _, d := range course {
		if d > 0 {
			trips = append(trips, float64(d)/float64(time.Millisecond))
		}
	}
	slices.Sort(trips)
	return trips
}

func median(sorted []float64) float64 { return stat.Quantile(0.5, stat.Empirical, sorted, nil) }

// each is the loss of each way where so many of all got no answer.
func each(lost, of int) float64 {
	if of == 0 {
		return 0
	}
	return 1 - math.Sqrt(1-float64(lost)/float64(of))
}
