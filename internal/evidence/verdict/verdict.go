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

func newReason(kind Kind, format string, args ...any) reason {
	return reason{kind, fmt.Sprintf(format, args...)}
}

// Judge holds evidence against limits.
func Judge(e Evidence, l Limits) record.Verdict {
	var reasons []reason
	judgePiece(&reasons, "the links' round trips and bandwidths", e.Links, l.judgeLinks)
	judgePiece(&reasons, "what links did to packets", e.Account, judgeAccount)
	judgePiece(&reasons, "the emulator's lateness", e.EmulatorLate, l.judgeEmulator)
	judgePiece(&reasons, "what stolen processors changed", e.Stolen, func(s record.Stolen) []reason { return l.judgeSteal(e, s) })
	judgePiece(&reasons, "the driver's lateness", e.DriverLate, func(us float64) []reason { return l.judgeDriverLateness(us, e.stolen()) })
	judgePiece(&reasons, "the driver's use of processors", e.DriverCPU, l.judgeDriverCPU)
	judgePiece(&reasons, "the machine's use of processors", e.HostCPU, func(u Use) []reason { return l.judgeHostCPU(u, e.Bound.figure) })
	judgePiece(&reasons, "what bound the throughput", e.Bound, nil)
	judgePiece(&reasons, "other programs' use of processors", e.Others, l.judgeOthers)
	judgePiece(&reasons, "processors taken by the hypervisor", e.Steal, func(s Share) []reason { return l.judgeHypervisor(s, e.stolen()) })
	judgePiece(&reasons, "the machines' clocks", e.Clocks, l.judgeClock)
	judgePiece(&reasons, "the events", e.Events, l.judgeEvents)
	judgePiece(&reasons, "operations that were left behind", e.Stuck, judgeStuck)
	judgePiece(&reasons, "what nodes and machine used", e.Samples, judgeSamples)
	judgePiece(&reasons, "how real links were", e.Real, nil)
	judgePiece(&reasons, "nodes being held to their flavors", e.Flavors, nil)
	judgePiece(&reasons, "acknowledged writes", e.Audit, judgeAudit)
	v := record.Verdict{State: record.Valid, Notes: slices.Concat(l.stealNotes(e), l.hostNotes(e), othersNote(e.Others))}
	if len(reasons) > 0 {
		v.State = record.Suspect
	}
	for _, r := range reasons {
		v.Reasons, v.Kinds = append(v.Reasons, r.text), append(v.Kinds, string(r.kind))
	}
	return v
}

// judgePiece judges a piece that is there, and takes down that one is missing.
func judgePiece[T any](reasons *[]reason, of string, p Piece[T], judge func(T) []reason) {
	if why, lacks := p.missingReason(); lacks {
		*reasons = append(*reasons, newReason(NoEvidence, "no evidence of %s: %s", of, why))
	}
	if p.status == present && judge != nil {
		*reasons = append(*reasons, judge(p.figure)...)
	}
}

// Piece is one piece of a trial's evidence: its figure, or why there is none. The zero Piece
// is one that nobody looked for, which is missing too: a piece that somebody forgets to hand
// over is never taken for a good one.
type Piece[T any] struct {
	figure T
	status status
	why    string // it is missing
}

type status int

const (
	unset status = iota
	present
	missing
	notDue
	unknowable
)

// Present is a piece that was found.
func Present[T any](figure T) Piece[T] { return Piece[T]{figure: figure, status: present} }

// Missing is a piece that was due and could not be had.
func Missing[T any](why string) Piece[T] { return Piece[T]{status: missing, why: why} }

// NotDue is a piece that this trial cannot have: the lateness of an emulator where the kernel
// moves packets, the audit of a trial that is not audited.
func NotDue[T any]() Piece[T] { return Piece[T]{status: notDue} }

// Unknown is a piece that this machine cannot give: a note of the verdict says so, and nothing is concluded
// from it.
func Unknown[T any](why string) Piece[T] { return Piece[T]{status: unknowable, why: why} }

// Figure is what was found; false where nothing was.
func (p Piece[T]) Figure() (figure T, found bool) { return p.figure, p.status == present }

// Unknown is why this machine cannot give the piece; false where it is not for that.
func (p Piece[T]) Unknown() (why string, is bool) { return p.why, p.status == unknowable }

// missingReason says why the piece is missing; false where it is not.
func (p Piece[T]) missingReason() (why string, missingReason bool) {
	switch p.status {
	case unset:
		return "nobody looked for it", true
	case missing:
		return p.why, true
	}
	return "", false
}

// Kind is what kind of reason makes a trial suspect. Its text is data: `kinds` of a verdict in
// summary.json, documented in docs/run-directory.md.
type Kind string

// Kinds of reasons.
const (
	LinkSilent    Kind = "link-silent"    // a link answered no probe
	LinkTrain     Kind = "link-train"     // no bandwidth train arrived on a link
	LinkRTT       Kind = "link-rtt"       // a link's round trip is off
	LinkBandwidth Kind = "link-bandwidth" // a link's bandwidth is off
	LinkLaw       Kind = "link-law"       // packets of a link did not do what was set while the trial ran
	LinkJitter    Kind = "link-jitter"    // a link's jitter is not the one that was set
	LinkChange    Kind = "link-change"    // packets of a link did not obey a change of it
	EmulatorLate  Kind = "emulator-late"
	DriverLate    Kind = "driver-late"
	DriverCPU     Kind = "driver-cpu"    // the driver used its cores
	HostCPU       Kind = "host-cpu"      // the machine used its cores
	Steal         Kind = "steal"         // the hypervisor took processors for others
	OtherWork     Kind = "other-work"    // other programs used the machine's processors
	Disturbed     Kind = "disturbed"     // figures are others without the stretches in which processors were taken
	MachineClock  Kind = "machine-clock" // another machine's clock is not known well enough
	EventLate     Kind = "event-late"
	EventFailed   Kind = "event-failed"
	EventSkipped  Kind = "event-skipped" // it did not happen
	EventByHand   Kind = "event-by-hand" // the experiment does not have it
	Stuck         Kind = "stuck"         // operations outlived their timeout
	Audit         Kind = "audit"         // it found something wrong
	NoEvidence    Kind = "no-evidence"   // a piece of evidence that was due is missing
)

// Kinds lists all of them.
func Kinds() []Kind {
	return []Kind{
		LinkSilent, LinkTrain, LinkRTT, LinkBandwidth, LinkLaw, LinkJitter, LinkChange, EmulatorLate, DriverLate, DriverCPU, HostCPU, Steal, OtherWork, Disturbed,
		MachineClock,
		EventLate, EventFailed, EventSkipped, EventByHand, Stuck, Audit, NoEvidence,
	}
}

// Remedy is what to change on the machine so that a reason of this kind does not come again; ""
// where that is not a matter of the machine.
func (k Kind) Remedy() string {
	switch {
	case k == DriverCPU || k == HostCPU:
		return "its processors were full: take fewer threads (--set workload.threads=N), fewer nodes, or a bigger machine"
	case k.Transient():
		return "its processors came too late: end other work on it, take one whose processors are its own, or ask for less (--set workload.target=N)"
	}
	return ""
}

// Transient tells whether a reason is the machine's and may be gone when the trial is run again:
// its processors were taken away for a while, and what they were to do came late or was
// measured wrong. Cores that were full would be full again, and what events or an audit found
// is not the machine's.
func (k Kind) Transient() bool {
	return slices.Contains([]Kind{LinkTrain, LinkRTT, LinkBandwidth, EmulatorLate, DriverLate, Steal, OtherWork, Disturbed, MachineClock, EventLate}, k)
}

// Limits are what a trial may deviate from what was asked and still be valid; docs/fidelity.md
// has those that hold where an experiment says nothing.
type Limits struct {
	RTTErrorMS     float64 // |median measured RTT - set RTT| of any link, beyond its own jitter
	BandwidthError float64 // relative, of any link direction
	EmulatorLateUS float64 // p99 over all packets of the measurement
	EventLateUS    float64 // p99 of beginning after the time that was due
	ClientLateUS   float64 // p99 of sending after the intended time
	ClientCPUShare float64 // of the cores the driver may use
	HostCPUShare   float64 // of the machine's cores, mean over the measurement
	StealShare     float64 // of the machine's CPU time
	OthersShare    float64 // of the machine's cores, that programs other than the run's use, mean over the measurement
	Moved          float64 // relative, of a figure when the stretches in which processors were taken are left out
}
