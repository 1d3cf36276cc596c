// Package verdict judges whether a trial is valid, from named pieces of evidence only. A piece has a figure, or a
// reason why it is missing. A trial is suspect if a due piece is missing or beyond its limit. The package does no I/O.
package verdict

import (
	"fmt"
	"slices"

	"skerry/internal/record"
)

// Evidence is the input of a verdict.
type Evidence struct {
	Links        Piece[[]record.LinkFidelity] // measured before the workload
	Account      Piece[record.LinkAccount]    // of the packets of the measurement
	EmulatorLate Piece[Late]                  // p99 over the packets of the measurement
	DriverLate   Piece[float64]               // us, p99 of sending after the intended time
	DriverCPU    Piece[Use]
	HostCPU      Piece[Use] // mean over the measurement
	Bound        Piece[record.Bound]
	Others       Piece[Use]   // use by programs outside the run, mean over the measurement
	Steal        Piece[Share] // of the machine's CPU time
	Clocks       Piece[Clock] // of other machines
	Stolen       Piece[record.Stolen]
	Events       Piece[Events]  // of the experiment, and fired manually
	Stuck        Piece[int64]   // operations that outlived their timeout
	Samples      Piece[Samples] // of nodes and machine
	Flavors      Piece[int]     // nodes with enforced flavors
	Real         Piece[int]     // measured real links
	Audit        Piece[record.Audit]
}

// Use is a use of cores. With several machines, it is that of the worst machine, with its name; otherwise Machine is
// "".
type Use struct {
	Cores, Of float64
	Machine   string
}

// Late is a lateness in microseconds.
type Late struct {
	US      float64
	Machine string
}

// Share is a part of a whole.
type Share struct {
	Of      float64
	Machine string
}

// Clock is the worst error, in microseconds, of mapping another machine's timestamps to this one's: the uncertainty of
// its offset, and the drift during the trial.
type Clock struct {
	UncertainUS, MovedUS float64
	Machine              string
}

// Samples counts the sampled and the due seconds of a measurement.
type Samples struct{ Taken, Due int }

type reason struct {
	kind Kind
	text string
}

func newReason(kind Kind, format string, args ...any) reason {
	return reason{kind, fmt.Sprintf(format, args...)}
}

// Judge compares evidence with limits.
func Judge(e Evidence, l Limits) record.Verdict {
	var reasons []reason
	judgePiece(&reasons, "round trips and bandwidths of links", e.Links, l.judgeLinks)
	judgePiece(&reasons, "the account of packets on links", e.Account, judgeAccount)
	judgePiece(&reasons, "the lateness of the emulator", e.EmulatorLate, l.judgeEmulator)
	judgePiece(&reasons, "the effect of stolen CPU time", e.Stolen, func(s record.Stolen) []reason { return l.judgeSteal(e, s) })
	judgePiece(&reasons, "the lateness of the driver", e.DriverLate,
		func(us float64) []reason { return l.judgeDriverLateness(us, e.stolen()) })
	judgePiece(&reasons, "the CPU use of the driver", e.DriverCPU, l.judgeDriverCPU)
	judgePiece(&reasons, "the CPU use of the machine", e.HostCPU, func(u Use) []reason { return l.judgeHostCPU(u, e.Bound.figure) })
	judgePiece(&reasons, "the bottleneck", e.Bound, nil)
	judgePiece(&reasons, "the CPU use of other programs", e.Others, l.judgeOthers)
	judgePiece(&reasons, "CPU time stolen by the hypervisor", e.Steal, func(s Share) []reason { return l.judgeHypervisor(s, e.stolen()) })
	judgePiece(&reasons, "the clocks of the machines", e.Clocks, l.judgeClock)
	judgePiece(&reasons, "the events", e.Events, l.judgeEvents)
	judgePiece(&reasons, "abandoned operations", e.Stuck, judgeStuck)
	judgePiece(&reasons, "samples of nodes and machine", e.Samples, judgeSamples)
	judgePiece(&reasons, "measurements of real links", e.Real, nil)
	judgePiece(&reasons, "the limits of flavors", e.Flavors, nil)
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

func judgePiece[T any](reasons *[]reason, of string, p Piece[T], judge func(T) []reason) {
	if why, lacks := p.missingReason(); lacks {
		*reasons = append(*reasons, newReason(NoEvidence, "no evidence of %s: %s", of, why))
	}
	if p.status == present && judge != nil {
		*reasons = append(*reasons, judge(p.figure)...)
	}
}

// Piece is one piece of a trial's evidence: its figure, or the reason why it is missing. The zero Piece is missing, so
// that an omitted piece never counts as good.
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

// Present is a piece with a figure.
func Present[T any](figure T) Piece[T] { return Piece[T]{figure: figure, status: present} }

// Missing is a piece that was due and could not be obtained.
func Missing[T any](why string) Piece[T] { return Piece[T]{status: missing, why: why} }

// NotDue is a piece that this trial cannot have: the lateness of an emulator if the kernel forwards packets, or the
// audit of a trial without one.
func NotDue[T any]() Piece[T] { return Piece[T]{status: notDue} }

// Unknown is a piece that this machine cannot provide. The verdict gets a note, and no conclusion follows.
func Unknown[T any](why string) Piece[T] { return Piece[T]{status: unknowable, why: why} }

// Figure returns the figure; found is false without one.
func (p Piece[T]) Figure() (figure T, found bool) { return p.figure, p.status == present }

// Unknown returns the reason of a piece that this machine cannot provide.
func (p Piece[T]) Unknown() (why string, is bool) { return p.why, p.status == unknowable }

func (p Piece[T]) missingReason() (why string, missingReason bool) {
	switch p.status {
	case unset:
		return "not collected", true
	case missing:
		return p.why, true
	}
	return "", false
}

// Kind is the kind of reason that makes a trial suspect. It is part of summary.json (see docs/run-summary.md).
type Kind string

const (
	LinkSilent    Kind = "link-silent"    // a link answered no probe
	LinkTrain     Kind = "link-train"     // no bandwidth train arrived on a link
	LinkRTT       Kind = "link-rtt"       // a link's round trip is off
	LinkBandwidth Kind = "link-bandwidth" // a link's bandwidth is off
	LinkLaw       Kind = "link-law"       // packets of a link did not obey the settings
	LinkJitter    Kind = "link-jitter"    // a link's jitter deviates from the setting
	LinkChange    Kind = "link-change"    // packets did not obey a change of a link
	EmulatorLate  Kind = "emulator-late"
	DriverLate    Kind = "driver-late"
	DriverCPU     Kind = "driver-cpu"    // the driver saturated its cores
	HostCPU       Kind = "host-cpu"      // the machine was saturated
	Steal         Kind = "steal"         // the hypervisor stole CPU time
	OtherWork     Kind = "other-work"    // other programs used the machine's CPU
	Disturbed     Kind = "disturbed"     // stolen CPU time changed the figures
	MachineClock  Kind = "machine-clock" // the offset of another machine's clock is too uncertain
	EventLate     Kind = "event-late"
	EventFailed   Kind = "event-failed"
	EventSkipped  Kind = "event-skipped" // it did not happen
	EventByHand   Kind = "event-by-hand" // not part of the experiment
	Stuck         Kind = "stuck"         // operations outlived their timeout
	Audit         Kind = "audit"         // lost writes or stale copies
	NoEvidence    Kind = "no-evidence"   // a piece of evidence that was due is missing
)

// Remedy is advice on the machine against a reason of this kind; "" if the machine is not the cause.
func (k Kind) Remedy() string {
	switch {
	case k == DriverCPU || k == HostCPU:
		return "CPU saturated: use fewer threads (--set workload.threads=N), fewer nodes, or a bigger machine"
	case k.Transient():
		return "CPU time was delayed: end other work on the machine, use a machine with dedicated CPUs, or reduce the load (--set " +
			"workload.target=N)"
	}
	return ""
}

// Transient reports whether a reason may disappear when the trial is repeated: CPU time was stolen for a while, and
// something was late or measured wrong. Saturated cores would be saturated again, and findings of events or an audit do
// not depend on the machine.
func (k Kind) Transient() bool {
	return slices.Contains([]Kind{LinkTrain, LinkRTT, LinkBandwidth, EmulatorLate, DriverLate, Steal, OtherWork, Disturbed, MachineClock,
		EventLate}, k)
}

// Limits are the maximum deviations of a valid trial; docs/fidelity.md has the defaults.
type Limits struct {
	RTTErrorMS     float64 // |median measured RTT - set RTT| of any link, beyond its own jitter
	BandwidthError float64 // relative, of any link direction
	EmulatorLateUS float64 // p99 over all packets of the measurement
	EventLateUS    float64 // p99
	ClientLateUS   float64 // p99 of sending after the intended time
	ClientCPUShare float64 // of the cores the driver may use
	HostCPUShare   float64 // of the machine's cores, mean over the measurement
	StealShare     float64 // of the machine's CPU time
	OthersShare    float64 // of the machine's cores, mean over the measurement
	Moved          float64 // relative change of a figure without the stretches with stolen CPU time
}
