package link

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// JitterReach is the largest value of a jitter table, in standard deviations. It is the limit of netem's tables, which
// hold 16-bit numbers in units of 1/8192.
const JitterReach = 32767.0 / 8192

// paretoShape is that of iproute2's tables.
const paretoShape = 3.0

// lowest is the lower bound of delays relative to the mean, in units of the jitter. The normal distribution is truncated there,
// which moves its mean by 0.8 % of the jitter.
var lowest = map[Distribution]float64{"": 2, Normal: 2, Uniform: 1, Pareto: 0.83, ParetoNormal: 1.8}

// MaxJitter returns the largest jitter for the latency. A larger one would require negative delays, and truncating
// them would raise the mean.
func (q Quality) MaxJitter() time.Duration {
	return time.Duration(float64(q.Latency) / lowest[q.Distribution])
}

// Range returns the lowest and highest value and the standard deviation, in units of Quality.Jitter.
func (d Distribution) Range() (low, high, deviation float64) {
	switch d {
	case Uniform:
		return -1, 1, 1 / math.Sqrt(3)
	case Pareto, ParetoNormal:
		return -lowest[d], JitterReach, 1
	default:
		return -JitterReach, JitterReach, 1
	}
}

// Table returns n quantiles of d, at the middles of n equal steps of cumulative probability. A uniformly chosen entry
// times Quality.Jitter is a jitter value. The table has mean 0 and standard deviation 1 (Uniform: half-width 1), within
// JitterReach. The shapes are those of iproute2: pareto has shape 3, and each quantile of paretonormal is a quarter
// normal and three quarters pareto.
func (d Distribution) Table(n int) []float64 {
	table := make([]float64, n)
	for i := range table {
		table[i] = d.quantile((float64(i) + 0.5) / float64(n))
	}
	if d == Uniform {
		return table
	}
	// Truncating the tail changes mean and deviation, and correcting them moves the tail. The iteration converges.
	for range 50 {
		mean, deviation := meanAndDeviation(table)
		for i, x := range table {
			table[i] = max(-JitterReach, min(JitterReach, (x-mean)/deviation))
		}
	}
	return table
}

func meanAndDeviation(values []float64) (mean, deviation float64) {
	for _, x := range values {
		mean += x / float64(len(values))
	}
	squares := 0.0
	for _, x := range values {
		squares += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(squares / float64(len(values)))
}

func (d Distribution) quantile(p float64) float64 {
	switch d {
	case Uniform:
		return 2*p - 1
	case Pareto:
		return pareto(p)
	case ParetoNormal:
		return normal(p)/4 + 3*pareto(p)/4
	default:
		return normal(p)
	}
}

func normal(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// pareto returns a quantile with mean 0 and standard deviation 1. The plain distribution has minimum 1, mean a/(a-1)
// and variance a/((a-1)²(a-2)).
func pareto(p float64) float64 {
	const a = paretoShape
	x := math.Pow(1-p, -1/a)
	return (x - a/(a-1)) / math.Sqrt(a/((a-1)*(a-1)*(a-2)))
}

// LossShare returns the long-term share of lost packets, including bursts.
func (q Quality) LossShare() float64 {
	delivered := 1 - q.Loss
	if b := q.Burst; b != nil {
		delivered *= 1 - b.LossShare()
	}
	return 1 - delivered
}

// LossShare returns the long-term share of lost packets. The model starts in the good state and stays there if P is 0.
func (b GilbertElliott) LossShare() float64 {
	if b.P == 0 {
		return 1 - b.K
	}
	bad := b.P / (b.P + b.R)
	return bad*(1-b.H) + (1-bad)*(1-b.K)
}

// Equal compares two qualities, including their bursts.
func (q Quality) Equal(o Quality) bool {
	if (q.Burst == nil) != (o.Burst == nil) || q.Burst != nil && *q.Burst != *o.Burst {
		return false
	}
	q.Burst, o.Burst = nil, nil
	return q == o
}

// Bounds of DefaultQueue.
const (
	// leastQueue holds two TCP super-packets of 64 KiB. With less, a slow link would drop the second half of
	// every burst.
	leastQueue = 128 << 10
	// leastQueueTime is a router's usual buffer for flows of unknown round-trip time.
	leastQueueTime = 50 * time.Millisecond
)

// DefaultQueue returns the queue bound in bytes for a bandwidth in bit/s and a one-way latency: the bandwidth-delay
// product of a round trip, so that one TCP stream can fill the link, but at least 50 ms and 128 KiB. It returns 0, no
// bound, without a bandwidth.
//
// Source: the rule of thumb of Villamizar and Song, "High performance TCP in ANSNET", 1994.
func DefaultQueue(bandwidth int64, latency time.Duration) int64 {
	if bandwidth <= 0 {
		return 0
	}
	wait := max(2*latency, leastQueueTime)
	return max(leastQueue, int64(float64(bandwidth)/8*wait.Seconds()))
}

// QueueBytes returns Queue, or the default bound.
func (q Quality) QueueBytes() int64 {
	if q.Queue > 0 {
		return q.Queue
	}
	return DefaultQueue(q.Bandwidth, q.Latency)
}

// Errors of engines.
var (
	ErrInvalid = errors.New("invalid link") // impossible Spec or Quality
	ErrExists  = errors.New("link exists")  // the ID is in use
	ErrUnknown = errors.New("unknown link") // no link has the ID
)

// Limits of names; maxDevice is the kernel's IFNAMSIZ minus 1.
const (
	maxID     = 64
	maxDevice = 15
)

// Validate returns ErrInvalid with the reason if s is impossible.
func (s Spec) Validate() error {
	switch {
	case s.ID == "" || len(s.ID) > maxID:
		return fmt.Errorf("%w: ID %q: want 1 to %d bytes", ErrInvalid, s.ID, maxID)
	case s.MTU != 0 && (s.MTU < 68 || s.MTU > 65535):
		return fmt.Errorf("%w %s: MTU %d: want 68 to 65535, or 0 for 1500", ErrInvalid, s.ID, s.MTU)
	}
	if s.A.Path != nil {
		return fmt.Errorf("%w %s: end A must be a device of this machine", ErrInvalid, s.ID)
	}
	for _, e := range []End{s.A, s.B} {
		if e.Path != nil {
			if err := e.Path.validate(s.ID); err != nil {
				return err
			}
			e.Device = "path" // a path has no device
		}
		if e.Device == "" || len(e.Device) > maxDevice {
			return fmt.Errorf("%w %s: device %q: want 1 to %d bytes", ErrInvalid, s.ID, e.Device, maxDevice)
		}
		if e.Netns == "" {
			return fmt.Errorf("%w %s: device %s: no namespace given", ErrInvalid, s.ID, e.Device)
		}
	}
	for _, q := range []Quality{s.AB, s.BA} {
		if err := q.Validate(); err != nil {
			return fmt.Errorf("%s: %w", s.ID, err)
		}
	}
	return nil
}

// Validate returns ErrInvalid with the reason if q is impossible.
func (q Quality) Validate() error {
	for _, p := range q.probabilities() {
		if !(p.value >= 0 && p.value <= 1) { // also rejects NaN
			return fmt.Errorf("%w: %s %v: want a probability, 0 to 1", ErrInvalid, p.name, p.value)
		}
	}
	known := []Distribution{"", Uniform, Normal, Pareto, ParetoNormal}
	switch {
	case q.Latency < 0:
		return fmt.Errorf("%w: latency %v is negative", ErrInvalid, q.Latency)
	case q.Jitter < 0:
		return fmt.Errorf("%w: jitter %v is negative", ErrInvalid, q.Jitter)
	case q.Bandwidth < 0:
		return fmt.Errorf("%w: bandwidth %d bit/s is negative", ErrInvalid, q.Bandwidth)
	case q.Queue < 0:
		return fmt.Errorf("%w: queue of %d bytes is negative", ErrInvalid, q.Queue)
	case !slices.Contains(known, q.Distribution):
		return fmt.Errorf("%w: distribution %q: want one of %q", ErrInvalid, q.Distribution, known[1:])
	case q.Jitter > q.MaxJitter():
		return fmt.Errorf("%w: jitter %v is too large for a latency of %v: at most %v with the distribution %s", ErrInvalid,
			q.Jitter, q.Latency, q.MaxJitter(), cmp.Or(q.Distribution, Normal))
	}
	return nil
}

type probability struct {
	name  string
	value float64
}

func (q Quality) probabilities() []probability {
	ps := []probability{
		{"loss", q.Loss}, {"duplicate", q.Duplicate}, {"reorder", q.Reorder}, {"corrupt", q.Corrupt},
	}
	if b := q.Burst; b != nil {
		ps = append(ps, probability{"burst p", b.P}, probability{"burst r", b.R},
			probability{"burst h", b.H}, probability{"burst k", b.K})
	}
	return ps
}
