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
	// packetBytes is the layer-3 size of a train's packets: 10,000 bits, and within any tunnel's MTU.
	packetBytes = 1250
	// minPackets keeps the train of a slow link long compared to the jitter of its timestamps.
	minPackets = 12
	// maxTrainBytes bounds a train in bytes. Above 1.3 Gbit/s trains get shorter and figures less exact.
	maxTrainBytes = 8 << 20
	// maxTries bounds the trains that are sent until one is valid.
	maxTries = 5
)

// MeasureBandwidth measures the capacity of one direction, in bit/s of layer-3 bytes, by the dispersion of a packet train
// (Dovrolis et al., "Packet-dispersion techniques and a capacity-estimation methodology", 2004). It sends UDP packets
// of 1250 bytes of IP back to back, faster than the link transmits, and measures the pace of their arrivals by the
// receiving kernel's timestamps. The result is the transmission rate of a busy link. Latency, loss and full receiver
// sockets do not affect it. It is not the throughput of a TCP stream.
//
// setBPS determines the length of the train: 50 ms of the link but at least 12 packets, which fits link.DefaultQueue.
// Drops at a smaller queue do no harm. The result is accurate to 0.5 % from 1 Mbit/s to 1 Gbit/s if arrivals are
// accurate to 0.1 ms. Other traffic on the link reduces it.
//
// A train with uneven arrivals was disturbed by the machine and is repeated. ErrDisturbed, with 0, means that every
// train was disturbed. ErrStarved means that the sender could not keep the link busy, as on a link without limit; the
// highest rate comes with it. ErrNoAnswer means that no packet arrived.
func MeasureBandwidth(ctx context.Context, w Way, setBPS int64) (int64, error) {
	off, err := enableTimestamps()
	if err != nil {
		return 0, fmt.Errorf("measure bandwidth: %w", err)
	}
	defer off()
	return measureBandwidth(ctx, w, setBPS)
}

func measureBandwidth(ctx context.Context, w Way, setBPS int64) (int64, error) {
	if setBPS <= 0 {
		return 0, fmt.Errorf("measure bandwidth: %d bit/s: want a positive bandwidth", setBPS)
	}
	n := trainLength(setBPS)
	gap := max(defaultQuiet, 4*time.Duration(packetBytes*8*float64(time.Second)/float64(setBPS)))
	var best int64
	failed := ErrStarved
	for range maxTries {
		came, err := w.Send(ctx, Train{Packets: n, Bytes: packetBytes, Quiet: gap})
		if err != nil {
			return 0, fmt.Errorf("measure bandwidth from %s to %s: %w", w.From, w.To, err)
		}
		switch {
		case came.Packets == 0:
			return 0, fmt.Errorf("measure bandwidth from %s to %s: %w", w.From, w.To, ErrNoAnswer)
		case came.Packets == 1: // of at least a dozen: the train was cut off
			failed = ErrDisturbed
		case came.Share < minShare:
			best = max(best, came.BPS)
		case came.Even < minEven:
			failed = ErrDisturbed
		default:
			return came.BPS, nil
		}
	}
	if failed == ErrDisturbed {
		best = 0
	}
	return best, fmt.Errorf("measure bandwidth from %s to %s: %w", w.From, w.To, failed)
}

func trainLength(bps int64) int {
	bytes := min(link.DefaultQueue(bps, 0), int64(float64(bps)/8*0.05), maxTrainBytes)
	return max(int(bytes/packetBytes), minPackets)
}

// TrainResult describes the arrival of a train.
type TrainResult struct {
	Packets int `json:"packets"` // number of arrivals
	// BPS is the rate in bit/s at which the busy link delivered the train. Share is the share of packets that
	// it is based on: those that waited for others. Packets that found the link idle are excluded, with the time
	// before them. Even is the share of these packets that arrived evenly. All are 0 without such packets.
	BPS   int64   `json:"bps"`
	Share float64 `json:"share"`
	Even  float64 `json:"even"`
}

// AnalyzeTrain evaluates the arrivals of packets of one size.
func AnalyzeTrain(arrivals []Arrival, bytes int) TrainResult {
	came := TrainResult{Packets: len(arrivals)}
	if len(arrivals) < 2 {
		return came
	}
	all := make([]point, len(arrivals))
	quickest := arrivals[0].Delay()
	for i, a := range arrivals {
		all[i] = point{time: a.At - arrivals[0].At, packets: a.Place}
		quickest = min(quickest, a.Delay())
	}
	rough := slope(all)
	if rough == 0 {
		return came
	}
	waited := quickest + max(minWait, time.Duration(2/rough))
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
	came.BPS, came.Share, came.Even = int64(rate*float64(bytes)*8e9), float64(len(busy)-1)/float64(len(arrivals)), evenShare(busy, rate)
	return came
}

// evenShare returns the share of points near a line of slope rate through their median:
//
//	packets          delayed, caught up     delayed, time lost
//	     │     ╱           │      ╱                 │        ╱
//	     │   ╱             │    ╱                   │      ╱
//	     │ ╱               │ ╱──┘ few are off       │ ╱───┘  half are off
//	     └────── time
//
// A delay that is caught up does not change the slope. Time lost in the middle of a train of length T reduces the
// slope by up to twice that share, and spreads the points evenly over as much around the line. If three quarters of
// the points are within 0.15 % of T, the slope is off by at most 0.8 %.
func evenShare(points []point, rate float64) float64 {
	if rate <= 0 {
		return 0
	}
	off := make([]float64, len(points))
	for i, p := range points {
		off[i] = float64(p.time) - float64(p.packets)/rate
	}
	middle := slices.Sorted(slices.Values(off))[len(off)/2]
	near := max(float64(minNear), 0.0015*float64(points[len(points)-1].time))
	n := 0
	for _, x := range off {
		if math.Abs(x-middle) <= near {
			n++
		}
	}
	return float64(n) / float64(len(off))
}

const (
	// minWait distinguishes a packet that waited from one that the machine delayed slightly.
	minWait = 200 * time.Microsecond
	// minShare of a train's packets must have waited.
	minShare = 0.2
	// minEven of those must be even within minNear, the precision of timers and batched deliveries.
	minEven = 0.75
	minNear = 50 * time.Microsecond
)

// point is the number of packets that had arrived at a time, in ns.
type point struct {
	time    int64
	packets int
}

// slope returns the rate of arrivals in packets per ns: the median over all pairs of points half the series apart
// (Theil-Sen estimator). A short stop of the machine changes it little, anywhere in the train.
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

// Way is one direction of a link.
type Way struct {
	Link     string // the two directions of a link are measured one after the other
	From, To string // for messages
	Send     func(ctx context.Context, t Train) (TrainResult, error)
}

// BandwidthRequest is one direction for Bandwidths.
type BandwidthRequest struct {
	Way
	BPS int64 // the configured bandwidth
}

type BandwidthResult struct {
	BPS int64
	Err error
}

// maxConcurrentBPS bounds the sum of bandwidths measured at the same time, in bit/s, so that two cores can send and
// receive the trains.
const maxConcurrentBPS = 1_000_000_000

// MeasureBandwidths measures many directions, different links concurrently, and returns the results in the order of demands.
// A hundred directions between eight places of one machine take about 2 s. The error is that of ctx.
func MeasureBandwidths(ctx context.Context, demands []BandwidthRequest) ([]BandwidthResult, error) {
	off, err := enableTimestamps()
	if err != nil {
		return nil, fmt.Errorf("measure bandwidths: %w", err)
	}
	defer off()
	results := make([]BandwidthResult, len(demands))
	waiting := make([]int, len(demands))
	for i := range waiting {
		waiting[i] = i
	}
	busy := map[string]bool{}
	var load int64
	finished := make(chan int)
	running := 0
	for len(waiting) > 0 || running > 0 {
		waiting = slices.DeleteFunc(waiting, func(i int) bool {
			d := demands[i]
			full := running > 0 && load+d.BPS > maxConcurrentBPS
			if busy[d.Link] || full || ctx.Err() != nil {
				return false
			}
			busy[d.Link] = true
			load += d.BPS
			running++
			go func() {
				r := &results[i]
				r.BPS, r.Err = measureBandwidth(ctx, d.Way, d.BPS)
				finished <- i
			}()
			return true
		})
		if running == 0 {
			break // ctx is done and nothing was started
		}
		d := demands[<-finished]
		busy[d.Link] = false
		load -= d.BPS
		running--
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("measure bandwidths: %w", err)
	}
	return results, nil
}
