package shaper

import (
	"math"
	"sync"
	"time"

	"skerry/internal/link"
	"skerry/internal/link/userspace/planted"
)

// jitterValues is how finely the quantiles of jitter are tabulated.
const jitterValues = 4096

// jitterPeriod is the time between two independent values of the jitter, in units of the jitter.
// Delays then change so slowly that next to no packet would overtake: the order of packets raises
// the mean by at most 0.5 % of the jitter (pareto), and not measurably for the normal distribution.
const jitterPeriod = 8

// grain is the longest time on the wire, at the bandwidth of a link, that may pass
// for one event. A super-packet of 64 KiB takes 5 ms at 100 Mbit/s; delivered whole it
// would make everything behind it wait in steps of that.
const grain = 200 * time.Microsecond

// tables are the quantiles of the distributions that are not normal, each computed when first used.
var tables = map[link.Distribution]func() []float64{
	link.Uniform:      table(link.Uniform),
	link.Pareto:       table(link.Pareto),
	link.ParetoNormal: table(link.ParetoNormal),
}

func table(d link.Distribution) func() []float64 {
	return sync.OnceValue(func() []float64 { return d.Table(jitterValues) })
}

// queueGrains is how many super-packets a full queue holds at least, so that its bound is
// a bound in packets and not in bursts.
const queueGrains = 8

// maxTime keeps sums of times within an int64.
const maxTime = 1 << 60

// Params is a link.Quality made ready for the data plane. It is never changed.
type Params struct {
	Quality   link.Quality // that it was made of
	latency   int64        // ns
	jitter    float64
	period    int64     // of the noise that jitter is made of
	table     []float64 // quantiles of the jitter's distribution; nil for the normal one
	rate      int64     // bit/s
	queue     int64     // bytes
	loss      float64
	duplicate float64
	reorder   float64
	corrupt   float64
	burst     *link.GilbertElliott
	down      bool
	draws     bool // something is drawn for each packet
}

// Compile makes a valid q ready.
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
		if planted.Jitter {
			p.period = 1
		}
		if table := tables[q.Distribution]; table != nil {
			p.table = table()
		}
	}
	p.draws = p.loss > 0 || p.duplicate > 0 || p.reorder > 0 || p.corrupt > 0 || p.burst != nil
	return p
}

// Grain is how many packets of so many layer-3 bytes may travel as one super-packet.
func (p *Params) Grain(bytes int) int {
	if p.rate == 0 {
		return math.MaxInt
	}
	most := min(float64(p.rate)/8*grain.Seconds(), float64(p.queue)/queueGrains)
	return max(1, int(most)/bytes)
}

// Randomized tells whether packets have fates of their own.
func (p *Params) Randomized() bool { return p.draws }

// Down tells whether the link carries nothing.
func (p *Params) Down() bool { return p.down }

// spread maps a standard normal value to the value of the jitter's distribution with the same
// cumulative probability, in units of the jitter.
func (p *Params) spread(x float64) float64 {
	if p.table == nil {
		return max(-link.JitterReach, min(link.JitterReach, x))
	}
	at := normalProbability(x)*jitterValues - 0.5 // table[i] is the quantile of (i + 0.5) / jitterValues
	i := min(max(int(at), 0), jitterValues-2)
	share := min(max(at-float64(i), 0), 1)
	return p.table[i] + share*(p.table[i+1]-p.table[i])
}
