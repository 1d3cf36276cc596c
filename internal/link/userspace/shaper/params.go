package shaper

import (
	"math"
	"sync"
	"time"

	"skerry/internal/link"
)

// jitterValues is the number of tabulated quantiles.
const jitterValues = 4096

// jitterPeriod is the period of the noise in units of the jitter. Delays then change so slowly that almost
// no packet would overtake. Keeping the order raises the mean by at most 0.5 % of the jitter (pareto).
const jitterPeriod = 8

// grain is the longest transmission time of a super-packet that stays whole. A super-packet of 64 KiB
// takes 5 ms at 100 Mbit/s; packets behind it would wait in steps of that size.
const grain = 200 * time.Microsecond

// tables are the quantiles of the distributions other than normal, computed on first use.
var tables = map[link.Distribution]func() []float64{
	link.Uniform:      table(link.Uniform),
	link.Pareto:       table(link.Pareto),
	link.ParetoNormal: table(link.ParetoNormal),
}

func table(d link.Distribution) func() []float64 {
	return sync.OnceValue(func() []float64 { return d.Table(jitterValues) })
}

// queueGrains is the minimum number of super-packets in a full queue, so that the bound applies to
// packets and not to bursts.
const queueGrains = 8

// maxTime keeps sums of times within an int64.
const maxTime = 1 << 60

// Params is a link.Quality prepared for the data plane. It is immutable.
type Params struct {
	Quality   link.Quality // source of the parameters
	latency   int64        // ns
	jitter    float64
	period    int64     // period of the noise
	table     []float64 // quantiles of the jitter; nil for the normal distribution
	rate      int64     // bit/s
	queue     int64     // bytes
	loss      float64
	duplicate float64
	reorder   float64
	corrupt   float64
	burst     *link.GilbertElliott
	down      bool
	draws     bool // packets need random draws
}

// Compile prepares a valid quality.
func Compile(q link.Quality) *Params {
	p := &Params{
		Quality: q,
		latency: min(int64(q.Latency), maxTime), jitter: min(float64(q.Jitter), maxTime/link.JitterReach),
		rate: q.Bandwidth, queue: q.QueueBytes(),
		loss: q.Loss, duplicate: q.Duplicate, reorder: q.Reorder, corrupt: q.Corrupt,
		down: q.Down,
	}
	if q.Burst != nil {
		b := *q.Burst
		p.burst, p.Quality.Burst = &b, &b
	}
	if q.Jitter > 0 {
		p.period = jitterPeriod * int64(min(q.Jitter, maxTime/jitterPeriod))
		if plantedJitter {
			p.period = 1
		}
		if table := tables[q.Distribution]; table != nil {
			p.table = table()
		}
	}
	p.draws = p.loss > 0 || p.duplicate > 0 || p.reorder > 0 || p.corrupt > 0 || p.burst != nil
	return p
}

// Grain returns the largest number of packets of a layer-3 size that may travel as one super-packet.
func (p *Params) Grain(bytes int) int {
	if p.rate == 0 {
		return math.MaxInt
	}
	most := min(float64(p.rate)/8*grain.Seconds(), float64(p.queue)/queueGrains)
	return max(1, int(most)/bytes)
}

// Randomized reports whether each packet needs a Fate.
func (p *Params) Randomized() bool { return p.draws }

func (p *Params) Down() bool { return p.down }

// spread maps a standard normal value to the jitter value with the same cumulative probability, in
// units of the jitter.
func (p *Params) spread(x float64) float64 {
	if p.table == nil {
		return max(-link.JitterReach, min(link.JitterReach, x))
	}
	at := normalProbability(x)*jitterValues - 0.5 // table[i] is the quantile of (i + 0.5) / jitterValues
	i := min(max(int(at), 0), jitterValues-2)
	share := min(max(at-float64(i), 0), 1)
	return p.table[i] + share*(p.table[i+1]-p.table[i])
}

// noise is a continuous random process whose values are standard normal at every moment.
//
// Knots z(k) at the times k * period are independent and normal. Between two knots
//
//	x(t) = cos(a) z(k) + sin(a) z(k+1),  a = pi/2 * (t/period - k)
//
// is normal with variance cos² + sin² = 1. x is continuous, its slope has the standard deviation
// pi/2 / period, and values two periods apart are independent. Drawing an independent delay for each
// packet would make the mean delay depend on the packet rate: packets may not overtake each other, so
// the largest of several close delays would hold for all of them.
type noise struct {
	seed   uint64
	period int64 // of the knots below
	knot   int64
	before float64 // z(knot)
	after  float64 // z(knot+1)
}

// at returns the value at a time. It depends only on seed, period and time.
func (n *noise) at(time, period int64) float64 {
	knot := time / period
	if period != n.period || knot != n.knot {
		n.period, n.knot = period, knot
		n.before, n.after = n.draw(knot), n.draw(knot+1)
	}
	sin, cos := math.Sincos(math.Pi / 2 * float64(time-knot*period) / float64(period))
	return cos*n.before + sin*n.after
}

// draw returns a knot by inversion of the normal distribution.
func (n *noise) draw(knot int64) float64 {
	p := (float64(mix(n.seed+uint64(knot)*0x9e3779b97f4a7c15)>>11) + 0.5) / (1 << 53)
	return math.Sqrt2 * math.Erfinv(2*p-1)
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
// number generators", 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// normalProbability returns the cumulative standard normal distribution.
func normalProbability(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
