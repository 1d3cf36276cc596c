// Package steal judges what processors that were taken from a driver could have changed: its
// figures with the marked stretches of a measurement and without them.
//
//	         │  second 1   │  second 2   │  second 3   │
//	marked   │   ▒▒     ▒  │             │ ▒▒▒▒        │   the driver could not run
//	taken?   │   yes       │             │   no        │   by the hypervisor, or by what is not of the trial
//	left out │   ▒▒     ▒  │             │             │
//
// A processor that the trial itself kept busy was not taken from it: what such a second holds
// is what the database and its clients are like on this machine.
package steal

import (
	"math"
	"time"

	"skerry/internal/load"
	"skerry/internal/record"
)

// Foreign is the share of the machine's cores from which on what others use in a second may
// be what held the driver up. Counting by hundredths of a second is less exact.
const Foreign = 0.05

// Full is the share of its cores from which on a driver holds itself up, and the share of a
// second that its quota may keep it from running.
const (
	Full      = 0.9
	throttled = 0.05
)

// Second is what is known of one second of a measurement.
type Second struct {
	load.Interval
	Foreign   float64 // cores that processes not of the trial used
	Throttled float64 // cores that the driver's quota kept from it
}

// Machine is what a driver could have of the machine.
type Machine struct {
	Cores       float64 // all
	DriverCores float64 // that the driver may use
}

// Taken tells whether what the driver waited for in a second was taken from the trial.
func (m Machine) Taken(s Second) bool {
	return s.Disturbance != nil && !m.full(s) && (s.Disturbance.Steal > 0 || s.Foreign >= Foreign*m.Cores)
}

// full tells whether the driver had used its cores up in a second.
func (m Machine) full(s Second) bool {
	return s.Cores() >= Full*m.DriverCores || s.Throttled >= throttled
}

// Find compares a measurement with what is left of it without the marked stretches.
func Find(m Machine, seconds []Second) record.Stolen {
	var all, left, late, lateLeft, lateFull load.Histogram
	var length, marked time.Duration
	var ok, okMarked int64
	for _, s := range seconds {
		all.Merge(s.Latency.Response)
		late.Merge(s.Late)
		length, ok = length+s.Length, ok+s.OK
		response, lates := s.Latency.Response.Clone(), s.Late.Clone()
		if m.Taken(s) {
			marked, okMarked = marked+s.Disturbance.For, okMarked+s.Disturbance.Ended
			response.Subtract(s.Disturbance.Response)
			lates.Subtract(s.Disturbance.Late)
		}
		left.Merge(response)
		lateLeft.Merge(lates)
		if !m.full(s) {
			lateFull.Merge(s.Late)
		}
	}
	f := record.Stolen{
		MarkedS: marked.Seconds(), Left: left.Count(), LateLeftP99US: us(lateLeft.Quantile(0.99)), LateNotFullP99US: us(lateFull.Quantile(0.99)),
		All: figures(all, rate(ok, length)), Without: figures(left, rate(ok-okMarked, length-marked)),
	}
	if length > 0 {
		f.Share = marked.Seconds() / length.Seconds()
	}
	f.Moved, f.MovedBy = moved(f.All, f.Without)
	return f
}

func figures(h load.Histogram, goodput float64) record.Figures {
	return record.Figures{Goodput: goodput, P50: us(h.Quantile(0.5)), P95: us(h.Quantile(0.95)), P99: us(h.Quantile(0.99))}
}

// moved is the largest relative change of a figure, and which one it is.
func moved(all, without record.Figures) (by float64, which string) {
	for _, f := range []struct {
		name         string
		all, without float64
	}{{"p50", all.P50, without.P50}, {"p95", all.P95, without.P95}, {"p99", all.P99, without.P99}, {"goodput", all.Goodput, without.Goodput}} {
		if f.all <= 0 {
			continue
		}
		if d := math.Abs(f.without/f.all - 1); d >= by {
			by, which = d, f.name
		}
	}
	return by, which
}

func rate(n int64, length time.Duration) float64 {
	if length <= 0 {
		return 0
	}
	return float64(n) / length.Seconds()
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
