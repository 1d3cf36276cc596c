// Package verdict judges whether a trial can be believed, from named pieces of evidence and
// from nothing else. A piece is there with its figure, or it is missing with its reason; one
// that was due and is missing makes a trial suspect, as one beyond its limit does. Nothing
// here measures, reads or writes.
package verdict

import (
	"fmt"
	"slices"

	"skerry/internal/record"
)

// Evidence is all that a verdict is formed from.
type Evidence struct {
	Links        Piece[[]record.LinkFidelity] // all that were up, measured before the workload
	Account      Piece[record.Account]        // of the packets of the measurement
	EmulatorLate Piece[Late]                  // p99 over the packets of the measurement
	DriverLate   Piece[float64]               // us, p99 of sending after the intended time
	DriverCPU    Piece[Use]
	HostCPU      Piece[Use] // mean over the measurement
	Bound        Piece[record.Bound]
	Others       Piece[Use]   // what programs other than the run's used, mean over the measurement
	Steal        Piece[Share] // of the machine's CPU time
	Clocks       Piece[Clock] // of other machines, where the lab is on some
	Stolen       Piece[record.Stolen]
	Events       Piece[Events]  // of the experiment, and those fired by hand
	Stuck        Piece[int64]   // operations that outlived their timeout
	Samples      Piece[Samples] // of what nodes and machine used
	Flavors      Piece[int]     // nodes that are held to the flavor that they have
	Real         Piece[int]     // links that are left as they are, and were measured meanwhile
	Audit        Piece[record.Audit]
}

// Use is what was used of processors, in cores. Of several machines evidence is of the worst, with its
// name; that is "" where there is one alone.
type Use struct {
	Cores, Of float64
	Machine   string
}

// Late is how late something was, in microseconds.
type Late struct {
	US      float64
	Machine string
}

// Share is a part of a whole.
type Share struct {
	Of      float64
	Machine string
}

// Clock is how far the place of a moment of another machine among those of this one may be wrong, in
// microseconds: what its offset is uncertain by, and what it moved by over the trial.
type Clock struct {
	UncertainUS, MovedUS float64
	Machine              string
}

// Samples are the seconds of a measurement that were sampled.
type Samples struct{ Taken, Due int }

// reason is why a trial is suspect.
type reason struct {
	kind Kind
	text string
}

func because(kind Kind, format string, args ...any) reason {
	return reason{kind, fmt.Sprintf(format, args...)}
}

// Judge holds evidence against limits.
func Judge(e Evidence, l Limits) record.Verdict {
	var reasons []reason
	look(&reasons, "the links' round trips and bandwidths", e.Links, l.links)
	look(&reasons, "what links did to packets", e.Account, accountFaults)
	look(&reasons, "the emulator's lateness", e.EmulatorLate, l.emulator)
	look(&reasons, "what stolen processors changed", e.Stolen, func(s record.Stolen) []reason { return l.disturbed(e, s) })
	look(&reasons, "the driver's lateness", e.DriverLate, func(us float64) []reason { return l.driverLate(us, e.stolen()) })
	look(&reasons, "the driver's use of processors", e.DriverCPU, l.driverCPU)
	look(&reasons, "the machine's use of processors", e.HostCPU, func(u Use) []reason { return l.hostCPU(u, e.Bound.figure) })
	look(&reasons, "what bound the throughput", e.Bound, nil)
	look(&reasons, "other programs' use of processors", e.Others, l.others)
	look(&reasons, "processors taken by the hypervisor", e.Steal, func(s Share) []reason { return l.steal(s, e.stolen()) })
	look(&reasons, "the machines' clocks", e.Clocks, l.clock)
	look(&reasons, "the events", e.Events, l.events)
	look(&reasons, "operations that were left behind", e.Stuck, stuck)
	look(&reasons, "what nodes and machine used", e.Samples, samples)
	look(&reasons, "how real links were", e.Real, nil)
	look(&reasons, "nodes being held to their flavors", e.Flavors, nil)
	look(&reasons, "acknowledged writes", e.Audit, auditFaults)
	v := record.Verdict{State: record.Valid, Notes: slices.Concat(l.notes(e), l.hostNotes(e), othersNote(e.Others))}
	if len(reasons) > 0 {
		v.State = record.Suspect
	}
	for _, r := range reasons {
		v.Reasons, v.Kinds = append(v.Reasons, r.text), append(v.Kinds, string(r.kind))
	}
	return v
}

// look judges a piece that is there, and takes down that one is missing.
func look[T any](reasons *[]reason, of string, p Piece[T], judge func(T) []reason) {
	if why, lacks := p.lacks(); lacks {
		*reasons = append(*reasons, because(NoEvidence, "no evidence of %s: %s", of, why))
	}
	if p.status == present && judge != nil {
		*reasons = append(*reasons, judge(p.figure)...)
	}
}
