package shape

import (
	"cmp"
	"math"
	"sync"
	"time"

	"skerry/internal/link"
)

// jitterValues is how finely jitter is tabulated.
const jitterValues = 4096

// grain is the longest time on the wire, at the bandwidth of a link, that may pass
// for one event. A super-packet of 64 KiB takes 5 ms at 100 Mbit/s; delivered whole it
// would make everything behind it wait in steps of that.
const grain = 200 * time.Microsecond

// tables are the shapes of jitter, each computed when first asked for.
var tables = map[link.Distribution]func() []float64{
	link.Uniform:      table(link.Uniform),
	link.Normal:       table(link.Normal),
	link.Pareto:       table(link.Pareto),
	link.ParetoNormal: table(link.ParetoNormal),
}

func table(d link.Distribution) func() []float64 {
	return sync.OnceValue(func() []float64 { return d.Table(jitterValues) })
}

// queueGrains is how many super-packets a full queue holds at least, so that its bound is
// a bound in packets and not in bursts.
const queueGrains = 8

// forever keeps sums of times within an int64.
const forever = 1 << 60

// Params is a link.Quality made ready for the data plane. It is never changed.
type Params struct {
	latency   int64 // ns
	jitter    float64
	table     []float64 // of the jitter's distribution
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
		latency: min(int64(q.Latency), forever), jitter: min(float64(q.Jitter), forever/link.JitterReach),
		rate: q.Bandwidth, queue: q.QueueBytes(),
		loss: q.Loss, duplicate: q.Duplicate, reorder: q.Reorder, corrupt: q.Corrupt,
		down: q.Down,
	}
	if q.Burst != nil {
		b := *q.Burst
		p.burst = &b
	}
	if q.Jitter > 0 {
		p.table = tables[cmp.Or(q.Distribution, link.Normal)]()
	}
	p.draws = p.loss > 0 || p.duplicate > 0 || p.reorder > 0 || p.corrupt > 0 || p.burst != nil
	return p
}

// Grain is how many packets of so many layer-3 bytes may travel as one super-packet.
func (p *Params) Grain(bytes int) int {
	switch {
	case p.jitter > 0:
		return 1 // each packet has a delay of its own
	case p.rate == 0:
		return math.MaxInt
	}
	most := min(float64(p.rate)/8*grain.Seconds(), float64(p.queue)/queueGrains)
	return max(1, int(most)/bytes)
}

// Draws tells whether packets have fates of their own.
func (p *Params) Draws() bool { return p.draws }

// Down tells whether the link carries nothing.
func (p *Params) Down() bool { return p.down }
