package probe

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"skerry/internal/link"
)

const (
	// carBytes is the layer-3 size of the packets measured with: small enough for
	// any tunnel's MTU, and 10,000 bits.
	carBytes = 1250
	// leastCars keeps the train of a slow link long against its timestamps' jitter.
	leastCars = 12
	// mostTrain bounds a train in bytes: above 1.3 Gbit/s trains get shorter, and
	// figures less exact.
	mostTrain = 8 << 20
	// tries is how often a train is sent that starved its link, or that was disturbed.
	tries = 5
)

// Bandwidth measures what one direction carries, in bit/s of layer-3 bytes, by the
// dispersion of a packet train (Dovrolis et al., "Packet-dispersion techniques and a
// capacity-estimation methodology", 2004). It sends UDP packets of 1250 bytes of IP
// back to back, faster than the link carries, and takes the pace at which they
// arrive by the receiving kernel's timestamps. The figure is the link's transmission
// rate while it is never idle; latency, loss and sockets full at the receiver do not
// enter. It is not what a TCP stream would get.
//
// setBPS sizes the train: 50 ms of the link or 12 packets, whichever is more, which
// fits link.DefaultQueue; packets that a smaller queue drops do no harm. Accurate to
// 0.5 % from 1 Mbit/s to 1 Gbit/s where arrivals are true to 0.1 ms. Other traffic on
// the link takes its share from the figure.
//
// A train whose packets did not come evenly, since something that moves them was held up, is sent
// again and counts for nothing; ErrDisturbed, with 0, says that none of them came evenly.
//
// ErrStarved comes with the highest figure seen when the sender could not keep the
// link busy, as on a link without limit, 0 where it never was; ErrNoAnswer when nothing
// arrived.
func Bandwidth(ctx context.Context, from, to Inside, setBPS int64) (int64, error) {
	off, err := holdStamps()
	if err != nil {
		return 0, fmt.Errorf("measuring bandwidth: %w", err)
	}
	defer off()
	return bandwidth(ctx, from, to, setBPS)
}

func bandwidth(ctx context.Context, from, to Inside, setBPS int64) (int64, error) {
	if setBPS <= 0 {
		return 0, fmt.Errorf("measuring bandwidth: %d bit/s: want the bandwidth that was set", setBPS)
	}
	n := trainLength(setBPS)
	gap := max(leastQuiet, 4*time.Duration(carBytes*8*float64(time.Second)/float64(setBPS)))
	var best int64
	failed := ErrStarved
	for range tries {
		cars, err := Send(ctx, from, to, Train{Packets: n, Bytes: carBytes, Quiet: gap})
		if err != nil {
			return 0, fmt.Errorf("measuring the bandwidth from %s to %s: %w", from.Addr(), to.Addr(), err)
		}
		if len(cars) < 2 {
			return 0, fmt.Errorf("measuring the bandwidth from %s to %s: %w", from.Addr(), to.Addr(), ErrNoAnswer)
		}
		bps, share, even := pace(cars, carBytes)
		switch {
		case share < leastShare:
			best = max(best, bps)
		case even < leastEven:
			failed = ErrDisturbed
		default:
			return bps, nil
		}
	}
	if failed == ErrDisturbed {
		best = 0
	}
	return best, fmt.Errorf("measuring the bandwidth from %s to %s: %w", from.Addr(), to.Addr(), failed)
}

func trainLength(bps int64) int {
	bytes := min(link.DefaultQueue(bps, 0), int64(float64(bps)/8*0.05), mostTrain)
	return max(int(bytes/carBytes), leastCars)
}

// Pace is the rate, in bit/s, at which a link without pause hands over the packets of a
// train, of so many bytes each, and the share of the packets that it rests on: those
// that waited for others before them. The rest found the link idle, and the time
// before them is left out. Both are 0 when there is no such packet.
func Pace(arrivals []Arrival, bytes int) (bps int64, share float64) {
	bps, share, _ = pace(arrivals, bytes)
	return bps, share
}

// pace tells also the share of these packets that came evenly.
func pace(arrivals []Arrival, bytes int) (bps int64, share, even float64) {
	if len(arrivals) < 2 {
		return 0, 0, 0
	}
	all := make([]point, len(arrivals))
	quickest := arrivals[0].Delay()
	for i, a := range arrivals {
		all[i] = point{time: a.At - arrivals[0].At, packets: a.Place}
		quickest = min(quickest, a.Delay())
	}
	rough := slope(all)
	if rough == 0 {
		return 0, 0, 0
	}
	waited := quickest + max(leastWait, time.Duration(2/rough))
	busy := []point{{}}
	for i, a := range arrivals[1:] {
		if a.Delay() > waited {
			last := busy[len(busy)-1]
			busy = append(busy, point{
				time:    last.time + all[i+1].time - all[i].time,
				packets: last.packets + all[i+1].packets - all[i].packets,
			})
		}
	}
	rate := slope(busy)
	return int64(rate * float64(bytes) * 8e9), float64(len(busy)-1) / float64(len(arrivals)), evenly(busy, rate)
}

// evenly is the share of points near a line of that slope, through the middle of them:
//
//	packets          held up, caught up     held up, and lost the time
//	     │     ╱           │      ╱                 │        ╱
//	     │   ╱             │    ╱                   │      ╱
//	     │ ╱               │ ╱──┘ few are off       │ ╱───┘  half are off
//	     └────── time
//
// What was caught up with leaves the slope as it is. Time that was lost in the middle of a train
// of length T makes it less by up to twice that, and spreads the points evenly over as much
// around the line. Where three quarters are within 0.15 % of T, the slope is off by 0.8 % at most.
func evenly(points []point, rate float64) float64 {
	if rate <= 0 {
		return 0
	}
	off := make([]float64, len(points))
	for i, p := range points {
		off[i] = float64(p.time) - float64(p.packets)/rate
	}
	middle := slices.Sorted(slices.Values(off))[len(off)/2]
	near := max(float64(leastNear), 0.0015*float64(points[len(points)-1].time))
	n := 0
	for _, x := range off {
		if math.Abs(x-middle) <= near {
			n++
		}
	}
	return float64(n) / float64(len(off))
}

const (
	// leastWait tells a packet that waited from one that the machine held up a little.
	leastWait = 200 * time.Microsecond
	// leastShare of a train's packets must have waited for the figure to count.
	leastShare = 0.2
	// leastEven of those must have come evenly, to leastNear at least: timers wake up and
	// packets are handed over together within that.
	leastEven = 0.75
	leastNear = 50 * time.Microsecond
)

// point is how many packets had arrived after a time, in ns.
type point struct {
	time    int64
	packets int
}

// slope is the arrivals' rate in packets per ns: the median over all pairs of points
// half the series apart (Theil and Sen's estimator). A moment in which the machine
// held packets up moves it little, wherever in the train it falls.
func slope(points []point) float64 {
	half := len(points) / 2
	var slopes []float64
	for i := range len(points) - half {
		a, b := points[i], points[i+half]
		if b.time > a.time {
			slopes = append(slopes, float64(b.packets-a.packets)/float64(b.time-a.time))
		}
	}
	if len(slopes) == 0 {
		return 0
	}
	slices.Sort(slopes)
	return slopes[len(slopes)/2]
}

// Demand asks Bandwidths for one direction.
type Demand struct {
	Pair
	BPS int64 // the bandwidth that was set
}

// BandwidthResult is what Bandwidth returned for a Demand.
type BandwidthResult struct {
	BPS int64
	Err error
}

// mostAtOnce bounds the sum of bandwidths under measurement, in bit/s, so that two
// cores can send and receive the trains.
const mostAtOnce = 1_000_000_000

// Bandwidths measures many directions, those that share no place at the same time,
// and returns the results in the order of demands. A hundred directions among eight
// places take about 2 s. The error is that of ctx.
func Bandwidths(ctx context.Context, demands []Demand) ([]BandwidthResult, error) {
	off, err := holdStamps()
	if err != nil {
		return nil, fmt.Errorf("measuring bandwidths: %w", err)
	}
	defer off()
	results := make([]BandwidthResult, len(demands))
	waiting := make([]int, len(demands))
	for i := range waiting {
		waiting[i] = i
	}
	busy := map[Inside]bool{}
	var load int64
	finished := make(chan int)
	running := 0
	for len(waiting) > 0 || running > 0 {
		waiting = slices.DeleteFunc(waiting, func(i int) bool {
			d := demands[i]
			full := running > 0 && load+d.BPS > mostAtOnce
			if busy[d.From] || busy[d.To] || full || ctx.Err() != nil {
				return false
			}
			busy[d.From], busy[d.To] = true, true
			load += d.BPS
			running++
			go func() {
				r := &results[i]
				r.BPS, r.Err = bandwidth(ctx, d.From, d.To, d.BPS)
				finished <- i
			}()
			return true
		})
		if running == 0 {
			break // ctx is done: nothing was started
		}
		d := demands[<-finished]
		busy[d.From], busy[d.To] = false, false
		load -= d.BPS
		running--
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("measuring bandwidths: %w", err)
	}
	return results, nil
}
