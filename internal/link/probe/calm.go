package probe

import (
	"context"
	"fmt"
	"time"

	"skerry/internal/kernel/procfs"
)

// stall is a stretch of time, in ns of CLOCK_REALTIME, in which a processor did not run.
type stall struct{ from, to int64 }

const (
	// leastStall is how late the prober wakes up where a processor was taken from it; on an idle
	// machine it is a tenth of that.
	leastStall = time.Millisecond
	// rounds is how often a pair is measured whose echoes were disturbed.
	rounds = 3
)

// Undisturbed measures as RTT does, and leaves out the echoes in whose flight a processor stood
// still: the hypervisor had taken one, or the prober itself woke up late. A pair that is left
// with less than three quarters of count is measured again, up to three times. One of which
// even then half is disturbed has all of its echoes: where the prober is held up all the time,
// that says nothing about what moves packets.
func Undisturbed(ctx context.Context, pairs []Pair, count int, interval time.Duration) ([]RTTResult, error) {
	results := make([]RTTResult, len(pairs))
	all, calm := make([][]time.Duration, len(pairs)), make([][]time.Duration, len(pairs))
	left := make([]int, len(pairs))
	for i := range left {
		left[i] = i
	}
	for range rounds {
		var some []Pair
		for _, i := range left {
			some = append(some, pairs[i])
		}
		p, err := ping(ctx, some, count, interval)
		if err != nil {
			return nil, err
		}
		var again []int
		for j, i := range left {
			r := p.result(j)
			quiet := p.calm(j)
			all[i], calm[i] = append(all[i], r.Samples...), append(calm[i], quiet...)
			results[i].Sent, results[i].Lost, results[i].Err = results[i].Sent+r.Sent, results[i].Lost+r.Lost, r.Err
			if len(quiet) < len(r.Samples) && len(calm[i]) < 3*count/4 {
				again = append(again, i)
			}
		}
		if left = again; len(left) == 0 {
			break
		}
	}
	for i := range results {
		samples := calm[i]
		if len(samples) < count/2 {
			samples = all[i]
		}
		results[i].Disturbed = len(all[i]) - len(samples)
		results[i].sum(samples)
	}
	return results, nil
}

// calm are the round trips during which no processor stood still.
func (p *pinger) calm(pair int) (samples []time.Duration) {
	for _, f := range p.flights[pair] {
		if f.back != 0 && !p.stalled(f) {
			samples = append(samples, time.Duration(f.back-f.left))
		}
	}
	return samples
}

func (p *pinger) stalled(f flight) bool {
	for _, s := range p.stalls {
		if s.from <= f.back && s.to >= f.left {
			return true
		}
	}
	return false
}

// notice notes that the prober, which was to wake up at a time, did so now, and whether the
// hypervisor took something meanwhile.
func (p *pinger) notice(due, now time.Time) {
	late := now.Sub(due)
	if taken := p.stolen.Delta(); taken > 0 {
		late = max(late, min(taken, mostTaken))
	}
	if late >= leastStall {
		p.stalls = append(p.stalls, stall{now.Add(-late).UnixNano(), now.UnixNano()})
	}
}

// mostTaken bounds what one look says of the past: of several processors together more time is
// taken than has passed.
const mostTaken = 100 * time.Millisecond

// ping sends the probes of all pairs and waits for their answers.
func ping(ctx context.Context, pairs []Pair, count int, interval time.Duration) (*pinger, error) {
	p := &pinger{interval: interval, count: count, flights: make([][]flight, len(pairs))}
	defer p.close()
	var err error
	if p.stolen, err = procfs.NewStealCounter(); err != nil {
		return nil, err
	}
	defer p.stolen.Close()
	if err := p.open(pairs); err != nil {
		return nil, err
	}
	if err := p.run(ctx); err != nil {
		return nil, fmt.Errorf("measuring round trips: %w", err)
	}
	return p, nil
}
