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
package verdict

import (
	"fmt"
	"math"
	"time"

	"skerry/internal/load"
	"skerry/internal/record"
)

// What must be left of a measurement without its marked stretches, to say that they changed
// nothing: so much of it, and so many operations, of which a percentile can be told.
const (
	minShareLeft      = 0.1
	minOperationsLeft = 200
)

// figuresKept tells whether a measurement's figures are the same without the stretches in which
// processors were taken from the driver.
func (l Limits) figuresKept(s record.Stolen) bool {
	return s.Share > 0 && 1-s.Share >= minShareLeft && s.Left >= minOperationsLeft && s.Moved <= l.Moved
}

// judgeDriverLateness tells lateness apart: processors were taken from the driver, which is judged by
// what that changed; the driver had used its own up, which would come again; or neither is known.
func (l Limits) judgeDriverLateness(late float64, s record.Stolen) []reason {
	if late <= l.ClientLateUS {
		return nil
	}
	what := fmt.Sprintf("the driver was more than %.1f ms late 1 %% of the time", late/1000)
	limit := fmt.Sprintf("(limit %.1f ms)", l.ClientLateUS/1000)
	switch {
	case s.LateLeftP99US <= l.ClientLateUS && l.figuresKept(s):
		return nil
	case s.Share > 0 && s.LateLeftP99US <= l.ClientLateUS:
		return reasonIf(true, DriverLate, "%s, since processors were taken from it %s: %s", what, limit, describeChange(s))
	case s.LateNotFullP99US <= l.ClientLateUS:
		return reasonIf(true, DriverCPU, "%s, in seconds in which its own cores were full %s: the client, not the database, was the limit", what, limit)
	}
	return reasonIf(true, DriverLate, "%s: latencies hold the client's own delay %s", what, limit)
}

// stolen is what is known of processors that were taken: without that, lateness has no reason.
func (e Evidence) stolen() record.Stolen {
	if e.Stolen.status != present {
		return record.Stolen{LateLeftP99US: math.Inf(1), LateNotFullP99US: math.Inf(1)}
	}
	return e.Stolen.figure
}

// judgeSteal judges what processors that were taken changed, whoever was late: servers that waited for one
// delay an answer without the driver being late. Where that is a reason already, it is not one twice. Trials
// of the run that share the machine are no reason by that alone, but a note.
func (l Limits) judgeSteal(e Evidence, s record.Stolen) []reason {
	if s.OwnTrials || !l.figuresChanged(s) ||
		len(l.judgeDriverLateness(e.DriverLate.figure, s))+len(l.judgeHypervisor(e.Steal.figure, s)) > 0 {
		return nil
	}
	return []reason{newReason(Disturbed, "processors were taken from the trial: %s (limit %.0f %%)", describeChange(s), 100*l.Moved)}
}

// figuresChanged tells whether a figure is another without the marked stretches.
func (l Limits) figuresChanged(s record.Stolen) bool {
	return s.Share > 0 && s.Left >= minOperationsLeft && s.Moved > l.Moved
}

// judgeHypervisor judges processor time that the hypervisor took by what it changed.
func (l Limits) judgeHypervisor(share Share, s record.Stolen) []reason {
	return reasonIf(share.Of > l.StealShare && !l.figuresKept(s), Steal, "the hypervisor took %.0f %% of the CPU time of %s for others: %s", 100*share.Of, machineName(share.Machine), describeChange(s))
}

// describeChange says what processors that were taken changed.
func describeChange(s record.Stolen) string {
	if s.Share == 0 {
		return "what that changed is not known"
	}
	if 1-s.Share < minShareLeft || s.Left < minOperationsLeft {
		return fmt.Sprintf("%.0f %% of the measurement is marked, and too little is left to compare with", 100*s.Share)
	}
	return fmt.Sprintf("without the marked %.0f %% of the measurement %s moves by %.1f %%", 100*s.Share, s.MovedBy, 100*s.Moved)
}

// stealNotes are what would have made a trial suspect, and did not change its figures.
func (l Limits) stealNotes(e Evidence) []string {
	s := e.stolen()
	late := e.DriverLate.figure > l.ClientLateUS && l.judgeDriverLateness(e.DriverLate.figure, s) == nil
	stolen := e.Steal.figure.Of > l.StealShare && l.judgeHypervisor(e.Steal.figure, s) == nil
	if s.OwnTrials && l.figuresChanged(s) {
		return []string{"other trials of the run took processors: " + describeChange(s)}
	}
	if !late && !stolen {
		return nil
	}
	return []string{"processors were taken away, which changed nothing: " + describeChange(s)}
}

// ForeignShare is the share of the machine's cores from which on what others use in a second may
// be what held the driver up. Counting by hundredths of a second is less exact.
const ForeignShare = 0.05

// Full is the share of its cores from which on a driver holds itself up, and the share of a
// second that its quota may keep it from running.
const (
	FullShare      = 0.9
	throttledShare = 0.05
)

// DriverSecond is what is known of one second of a measurement.
type DriverSecond struct {
	load.Interval
	Foreign   float64 // cores that processes not of the trial used
	Throttled float64 // cores that the driver's quota kept from it
}

// DriverMachine is what a driver could have of the machine.
type DriverMachine struct {
	Cores       float64 // all
	DriverCores float64 // that the driver may use
}

// Taken tells whether what the driver waited for in a second was taken from the trial.
func (m DriverMachine) Taken(s DriverSecond) bool {
	return s.Disturbance != nil && !m.driverFull(s) && (s.Disturbance.Steal > 0 || s.Foreign >= ForeignShare*m.Cores)
}

// driverFull tells whether the driver had used its cores up in a second.
func (m DriverMachine) driverFull(s DriverSecond) bool {
	return s.Cores() >= FullShare*m.DriverCores || s.Throttled >= throttledShare
}

// MeasureSteal compares a measurement with what is left of it without the marked stretches.
func MeasureSteal(m DriverMachine, seconds []DriverSecond) record.Stolen {
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
		if !m.driverFull(s) {
			lateFull.Merge(s.Late)
		}
	}
	f := record.Stolen{
		MarkedS: marked.Seconds(), Left: left.Count(), LateLeftP99US: microseconds(lateLeft.Quantile(0.99)), LateNotFullP99US: microseconds(lateFull.Quantile(0.99)),
		All: figures(all, perSecond(ok, length)), Without: figures(left, perSecond(ok-okMarked, length-marked)),
	}
	if length > 0 {
		f.Share = marked.Seconds() / length.Seconds()
	}
	f.Moved, f.MovedBy = largestChange(f.All, f.Without)
	return f
}

func figures(h load.Histogram, goodput float64) record.Figures {
	return record.Figures{Goodput: goodput, P50: microseconds(h.Quantile(0.5)), P95: microseconds(h.Quantile(0.95)), P99: microseconds(h.Quantile(0.99))}
}

// largestChange is the largest relative change of a figure, and which one it is.
func largestChange(all, without record.Figures) (by float64, which string) {
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

func perSecond(n int64, length time.Duration) float64 {
	if length <= 0 {
		return 0
	}
	return float64(n) / length.Seconds()
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
