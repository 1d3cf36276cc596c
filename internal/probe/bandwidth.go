package probe

import (
	"context"
	"fmt"
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
	// tries is how often a train that starved its link is sent.
	tries = 3
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
// ErrStarved comes with the highest figure seen when the sender could not keep the
// link busy, as on a link without limit; ErrNoAnswer when nothing arrived.
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
	for range tries {
		cars, err := Send(ctx, from, to, Train{Packets: n, Bytes: carBytes, Quiet: gap})
		if err != nil {
			return 0, fmt.Errorf("measuring the bandwidth from %s to %s: %w", from.Addr(), to.Addr(), err)
		}
		if len(cars) < 2 {
			return 0, fmt.Errorf("measuring the bandwidth from %s to %s: %w", from.Addr(), to.Addr(), ErrNoAnswer)
		}
		bps := Pace(cars, carBytes)
		if !starved(cars, bps) {
			return bps, nil
		}
		best = max(best, bps)
	}
	return best, fmt.Errorf("measuring the bandwidth from %s to %s: %w", from.Addr(), to.Addr(), ErrStarved)
}

func trainLength(bps int64) int {
	bytes := min(link.DefaultQueue(bps, 0), int64(float64(bps)/8*0.05), mostTrain)
	return max(int(bytes/carBytes), leastCars)
}

// Pace is the rate, in bit/s, at which the packets of a train, of so many bytes each,
// arrived: the median over all pairs of packets half a train apart (Theil and Sen's
// estimator of a slope). A moment in which the machine held packets up moves it
// little, wherever in the train it falls. It is 0 for fewer than two packets.
func Pace(cars []Arrival, bytes int) int64 {
	half := len(cars) / 2
	slopes := make([]float64, 0, len(cars)-half)
	for i := range len(cars) - half {
		a, b := cars[i], cars[i+half]
		if b.At > a.At {
			bits := float64(b.Place-a.Place) * float64(bytes) * 8
			slopes = append(slopes, bits/float64(b.At-a.At)*1e9)
		}
	}
	if len(slopes) == 0 {
		return 0
	}
	slices.Sort(slopes)
	return int64(slopes[len(slopes)/2])
}

// starved tells whether the link ran empty during the train. While a queue stands
// before the link every packet takes longer than the first one, which found it
// empty, by what stands there; a packet that does not by half a packet (the one before
// has begun to leave when it is sent), past the train's head, was sent into an empty
// queue again.
func starved(cars []Arrival, bps int64) bool {
	if bps <= 0 {
		return true
	}
	transmission := int64(carBytes * 8 * 1e9 / float64(bps))
	first := cars[0].At - cars[0].Sent
	idle := 0
	body := cars[len(cars)/8:]
	for _, c := range body {
		if c.At-c.Sent < first+transmission/2 {
			idle++
		}
	}
	return idle*100 > len(body)
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
