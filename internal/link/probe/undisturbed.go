package probe

import (
	"context"
	"fmt"
	"time"

	"skerry/internal/kernel/procfs"
)

// stall is an interval, in ns of CLOCK_REALTIME, in which a processor did not run.
type stall struct{ from, to int64 }

const (
	// minStall is the lateness of a wake-up that indicates a lost processor. On an idle machine a wake-up is
	// ten times quicker.
	minStall = time.Millisecond
	// maxRounds bounds the measurements of a pair with disturbed echoes.
	maxRounds = 3
)

// MeasureUndisturbedRTT measures as RTT does, without the echoes during which a processor stopped: the hypervisor took one, or
// the prober woke up late. A pair with less than three quarters of count undisturbed echoes is measured again, up to
// three times. If still fewer than half remain, all echoes count: a prober that is always late says nothing about
// the packets.
func MeasureUndisturbedRTT(ctx context.Context, pairs []Pair, count int, interval time.Duration) ([]RTTResult, error) {
	results := make([]RTTResult, len(pairs))
	all, calm := make([][]time.Duration, len(pairs)), make([][]time.Duration, len(pairs))
	left := make([]int, len(pairs))
	for i := range left {
		left[i] = i
	}
	for range maxRounds {
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
			quiet := p.undisturbed(j)
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
		results[i].setSamples(samples)
	}
	return results, nil
}

// undisturbed returns the round trips during which no processor stopped.
func (p *pinger) undisturbed(pair int) (samples []time.Duration) {
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

// recordStall records a stall if the prober woke up late or the hypervisor took processor time.
func (p *pinger) recordStall(due, now time.Time) {
	late := now.Sub(due)
	if taken := p.steal.Delta(); taken > 0 {
		late = max(late, min(taken, maxSteal))
	}
	if late >= minStall {
		p.stalls = append(p.stalls, stall{now.Add(-late).UnixNano(), now.UnixNano()})
	}
}

// maxSteal bounds the stolen time of one reading, which adds up over all processors.
const maxSteal = 100 * time.Millisecond

// ping sends the probes of all pairs and waits for their replies.
func ping(ctx context.Context, pairs []Pair, count int, interval time.Duration) (*pinger, error) {
	p := &pinger{interval: interval, count: count, flights: make([][]flight, len(pairs))}
	defer p.close()
	var err error
	if p.steal, err = procfs.NewStealCounter(); err != nil {
		return nil, err
	}
	defer p.steal.Close()
	if err := p.open(pairs); err != nil {
		return nil, err
	}
	if err := p.run(ctx); err != nil {
		return nil, fmt.Errorf("measure round trips: %w", err)
	}
	return p, nil
}
