package verdict

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"skerry/internal/evidence/bottleneck"
	"skerry/internal/load"
	"skerry/internal/record"
)

func reasonIf(holds bool, kind Kind, format string, args ...any) []reason {
	if !holds {
		return nil
	}
	return []reason{newReason(kind, format, args...)}
}

func ofMachine(machine string) string {
	if machine == "" {
		return ""
	}
	return " of " + machine
}

func machineName(name string) string { return cmp.Or(name, "the machine") }

func (l Limits) judgeEmulator(late Late) []reason {
	return reasonIf(late.US > l.EmulatorLateUS, EmulatorLate,
		"the emulator%s delivered 1 %% of the packets more than %.1f ms late (limit %.1f ms)", ofMachine(late.Machine), late.US/1000,
		l.EmulatorLateUS/1000)
}

// judgeClock uses the limit of events, whose times are compared with those of other machines.
func (l Limits) judgeClock(c Clock) []reason {
	wrong := c.UncertainUS + c.MovedUS
	return reasonIf(wrong > l.EventLateUS, MachineClock,
		"the clock%s is known to %.1f ms, and moved by %.1f ms during the trial (limit %.1f ms together): times of its client may be wrong",
		ofMachine(c.Machine), c.UncertainUS/1000, c.MovedUS/1000, l.EventLateUS/1000)
}

func (l Limits) judgeDriverCPU(u Use) []reason {
	return reasonIf(u.Cores > l.ClientCPUShare*u.Of, DriverCPU,
		"the driver used %.2f of its %.3g cores: the client, not the database, was the limit", u.Cores, u.Of)
}

func (l Limits) busy(u Use) bool { return u.Cores > l.HostCPUShare*u.Of }

// judgeHostCPU accepts a busy machine if round trips explain the latency, which it did not prolong.
func (l Limits) judgeHostCPU(u Use, b record.Bound) []reason {
	return reasonIf(l.busy(u) && !bottleneck.DistanceExplains(b), HostCPU,
		"bound by %s, which used %.2f of its %.0f cores on average: CPU, not the network, was the limit", machineName(u.Machine), u.Cores, u.Of)
}

func (l Limits) hostNotes(e Evidence) []string {
	u, b := e.HostCPU.figure, e.Bound.figure
	switch {
	case l.busy(u) && bottleneck.DistanceExplains(b):
		return []string{fmt.Sprintf("%s used %.2f of its %.0f cores, which changed little: round trips are %.0f %% of the latency",
			machineName(u.Machine), u.Cores, u.Of, 100*b.RoundTripMS/b.LatencyMS)}
	case !l.busy(u) && b.By == bottleneck.Machine:
		return []string{"bound by the machine: " + b.Text}
	}
	return nil
}

// judgeOthers judges programs outside the run even if the driver was not late: CPU time taken from servers or the
// emulation counts as the database's latency.
func (l Limits) judgeOthers(u Use) []reason {
	return reasonIf(u.Cores > l.OthersShare*u.Of, OtherWork,
		"other programs used %.2f of the %.0f cores of %s (limit %.0f %%): waits for processors count as the database's latency",
		u.Cores, u.Of, machineName(u.Machine), 100*l.OthersShare)
}

func othersNote(p Piece[Use]) []string {
	why, unknown := p.Unknown()
	if !unknown {
		return nil
	}
	return []string{"CPU use of other programs is unknown: " + why}
}

func judgeStuck(n int64) []reason {
	return reasonIf(n > 0, Stuck, "%d operations exceeded their timeout and were abandoned", n)
}

// sampledShare is the minimum share of sampled seconds; a busy machine sometimes needs two seconds for a sample.
const sampledShare = 0.5

func judgeSamples(s Samples) []reason {
	return reasonIf(float64(s.Taken) < sampledShare*float64(s.Due), NoEvidence, "nodes and machine were sampled in %d of %d seconds",
		s.Taken, s.Due)
}

// Minimum remainder of a measurement without its marked stretches for a comparison: a share of the time, and a number
// of operations that supports a percentile.
const (
	minShareLeft      = 0.1
	minOperationsLeft = 200
)

func (l Limits) figuresKept(s record.Stolen) bool {
	return s.Share > 0 && 1-s.Share >= minShareLeft && s.Left >= minOperationsLeft && s.Moved <= l.Moved
}

// judgeDriverLateness distinguishes stolen CPU time, which is judged by its effect; a driver that saturated its own
// cores, which would happen again; and unknown causes.
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
		return reasonIf(true, DriverLate, "%s, due to stolen CPU time %s: %s", what, limit, describeChange(s))
	case s.LateNotFullP99US <= l.ClientLateUS:
		return reasonIf(true, DriverCPU, "%s, in seconds in which it saturated its cores %s: the client, not the database, was the limit", what,
			limit)
	}
	return reasonIf(true, DriverLate, "%s: latencies include the client's delay %s", what, limit)
}

// stolen returns the effect of stolen CPU time; if it is missing, no lateness is excused.
func (e Evidence) stolen() record.Stolen {
	if e.Stolen.status != present {
		return record.Stolen{LateLeftP99US: math.Inf(1), LateNotFullP99US: math.Inf(1)}
	}
	return e.Stolen.figure
}

// judgeSteal judges the effect of stolen CPU time even if the driver was not late: waiting servers delay answers too.
// It adds no second reason for the same cause. Concurrent trials of the run only cause a note.
func (l Limits) judgeSteal(e Evidence, s record.Stolen) []reason {
	if s.OwnTrials || !l.figuresChanged(s) ||
		len(l.judgeDriverLateness(e.DriverLate.figure, s))+len(l.judgeHypervisor(e.Steal.figure, s)) > 0 {
		return nil
	}
	return []reason{newReason(Disturbed, "CPU time was stolen from the trial: %s (limit %.0f %%)", describeChange(s), 100*l.Moved)}
}

func (l Limits) figuresChanged(s record.Stolen) bool {
	return s.Share > 0 && s.Left >= minOperationsLeft && s.Moved > l.Moved
}

func (l Limits) judgeHypervisor(share Share, s record.Stolen) []reason {
	return reasonIf(share.Of > l.StealShare && !l.figuresKept(s), Steal, "the hypervisor stole %.0f %% of the CPU time of %s: %s",
		100*share.Of, machineName(share.Machine), describeChange(s))
}

func describeChange(s record.Stolen) string {
	if s.Share == 0 {
		return "the effect is unknown"
	}
	if 1-s.Share < minShareLeft || s.Left < minOperationsLeft {
		return fmt.Sprintf("%.0f %% of the measurement is marked, too little remains for a comparison", 100*s.Share)
	}
	return fmt.Sprintf("without the marked %.0f %% of the measurement, %s changes by %.1f %%", 100*s.Share, s.MovedBy, 100*s.Moved)
}

func (l Limits) stealNotes(e Evidence) []string {
	s := e.stolen()
	late := e.DriverLate.figure > l.ClientLateUS && l.judgeDriverLateness(e.DriverLate.figure, s) == nil
	stolen := e.Steal.figure.Of > l.StealShare && l.judgeHypervisor(e.Steal.figure, s) == nil
	if s.OwnTrials && l.figuresChanged(s) {
		return []string{"other trials of the run used CPU time: " + describeChange(s)}
	}
	if !late && !stolen {
		return nil
	}
	return []string{"CPU time was stolen without effect: " + describeChange(s)}
}

// ForeignShare is the share of the machine's cores above which other programs may have held up the driver in a second.
// CPU accounting by hundredths of a second is less precise.
const ForeignShare = 0.05

// FullShare is the share of its cores above which a driver holds itself up; throttledShare is the share of a second in
// which its quota may stop it.
const (
	fullShare      = 0.9
	throttledShare = 0.05
)

// DriverSecond is one second of a measurement as the driver experienced it.
type DriverSecond struct {
	load.Interval
	Foreign   float64 // cores that processes not of the trial used
	Throttled float64 // cores that the driver's quota kept from it
}

// DriverMachine is the CPU resources of the driver.
type DriverMachine struct {
	Cores       float64 // all
	DriverCores float64 // that the driver may use
}

// Taken reports whether the driver's waits in a second were caused from outside the trial.
func (m DriverMachine) Taken(s DriverSecond) bool {
	return s.Disturbance != nil && !m.driverFull(s) && (s.Disturbance.Steal > 0 || s.Foreign >= ForeignShare*m.Cores)
}

func (m DriverMachine) driverFull(s DriverSecond) bool {
	return s.Cores() >= fullShare*m.DriverCores || s.Throttled >= throttledShare
}

// MeasureSteal compares a measurement with its remainder without the marked stretches:
//
//	         │  second 1   │  second 2   │  second 3   │
//	marked   │   ▒▒     ▒  │             │ ▒▒▒▒        │   the driver could not run
//	taken?   │   yes       │             │   no        │   by the hypervisor or by programs outside the trial
//	excluded │   ▒▒     ▒  │             │             │
//
// A processor that the trial itself kept busy was not stolen: such a second shows the behaviour of the database and its
// clients on this machine.
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
		MarkedS: marked.Seconds(), Left: left.Count(), LateLeftP99US: microseconds(lateLeft.Quantile(0.99)),
		LateNotFullP99US: microseconds(lateFull.Quantile(0.99)),
		All:              figures(all, perSecond(ok, length)), Without: figures(left, perSecond(ok-okMarked, length-marked)),
	}
	if length > 0 {
		f.Share = marked.Seconds() / length.Seconds()
	}
	f.Moved, f.MovedBy = largestChange(f.All, f.Without)
	return f
}

func figures(h load.Histogram, goodput float64) record.Figures {
	return record.Figures{Goodput: goodput, P50: microseconds(h.Quantile(0.5)), P95: microseconds(h.Quantile(0.95)),
		P99: microseconds(h.Quantile(0.99))}
}

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
