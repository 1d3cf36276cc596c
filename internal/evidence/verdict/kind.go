package verdict

import "slices"

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
	case k.MayPass():
		return "its processors came too late: end other work on it, take one whose processors are its own, or ask for less (--set workload.target=N)"
	}
	return ""
}

// MayPass tells whether a reason is the machine's and may be gone when the trial is run again:
// its processors were taken away for a while, and what they were to do came late or was
// measured wrong. Cores that were full would be full again, and what events or an audit found
// is not the machine's.
func (k Kind) MayPass() bool {
	return slices.Contains([]Kind{LinkTrain, LinkRTT, LinkBandwidth, EmulatorLate, DriverLate, Steal, OtherWork, Disturbed, MachineClock, EventLate}, k)
}
