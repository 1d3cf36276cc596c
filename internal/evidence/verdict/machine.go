package verdict

import (
	"cmp"
	"fmt"

	"skerry/internal/evidence/bottleneck"
	"skerry/internal/record"
)

// reasonIf is a reason by itself where it holds.
func reasonIf(holds bool, kind Kind, format string, args ...any) []reason {
	if !holds {
		return nil
	}
	return []reason{newReason(kind, format, args...)}
}

// ofMachine names a machine in a sentence, "" where there is one alone.
func ofMachine(machine string) string {
	if machine == "" {
		return ""
	}
	return " of " + machine
}

// machineName is the subject of a sentence.
func machineName(name string) string { return cmp.Or(name, "the machine") }

func (l Limits) judgeEmulator(late Late) []reason {
	return reasonIf(late.US > l.EmulatorLateUS, EmulatorLate, "the emulator%s handed 1 %% of the packets over more than %.1f ms late (limit %.1f ms)", ofMachine(late.Machine), late.US/1000, l.EmulatorLateUS/1000)
}

// judgeClock judges by the limit of events: moments of other machines are looked at beside them.
func (l Limits) judgeClock(c Clock) []reason {
	wrong := c.UncertainUS + c.MovedUS
	return reasonIf(wrong > l.EventLateUS, MachineClock, "the clock%s is known to %.1f ms, and moved by %.1f ms while the trial ran (limit %.1f ms together): what its client saw may have been at another time",
		ofMachine(c.Machine), c.UncertainUS/1000, c.MovedUS/1000, l.EventLateUS/1000)
}

func (l Limits) judgeDriverCPU(u Use) []reason {
	return reasonIf(u.Cores > l.ClientCPUShare*u.Of, DriverCPU, "the driver used %.2f of its %.3g cores: the client, not the database, was the limit", u.Cores, u.Of)
}

func (l Limits) busy(u Use) bool { return u.Cores > l.HostCPUShare*u.Of }

// judgeHostCPU lets a busy machine pass where round trips are what operations took: it made them no longer.
func (l Limits) judgeHostCPU(u Use, b record.Bound) []reason {
	return reasonIf(l.busy(u) && !bottleneck.DistanceExplains(b), HostCPU,
		"bound by %s, which was busy with %.2f of its %.0f cores on average: CPU, not the network, was the limit", machineName(u.Machine), u.Cores, u.Of)
}

// hostNotes tell of a machine that was busy and yet no reason to doubt, and of a trial that it bound
// within its limit.
func (l Limits) hostNotes(e Evidence) []string {
	u, b := e.HostCPU.figure, e.Bound.figure
	switch {
	case l.busy(u) && bottleneck.DistanceExplains(b):
		return []string{fmt.Sprintf("%s was busy with %.2f of its %.0f cores, which changed little: round trips are %.0f %% of what operations took", machineName(u.Machine), u.Cores, u.Of, 100*b.RoundTripMS/b.LatencyMS)}
	case !l.busy(u) && b.By == bottleneck.Machine:
		return []string{"bound by the machine: " + b.Text}
	}
	return nil
}

// judgeOthers judges programs that are none of the run's, whether or not they made the driver late: what they took from
// servers, or from the emulation, counts as the database's latency.
func (l Limits) judgeOthers(u Use) []reason {
	return reasonIf(u.Cores > l.OthersShare*u.Of, OtherWork, "other programs used %.2f of the %.0f cores of %s (limit %.0f %%): what servers waited for processors counts as the database's latency",
		u.Cores, u.Of, machineName(u.Machine), 100*l.OthersShare)
}

// othersNote says that the use by other programs is not known, and why.
func othersNote(p Piece[Use]) []string {
	why, unknown := p.Unknown()
	if !unknown {
		return nil
	}
	return []string{"how much of the machine other programs used is not known: " + why}
}

func judgeStuck(n int64) []reason {
	return reasonIf(n > 0, Stuck, "%d operations outlived their timeout and were left behind", n)
}

// sampledShare is how many of a measurement's seconds must have been sampled: a busy machine
// takes two seconds for one now and then.
const sampledShare = 0.5

func judgeSamples(s Samples) []reason {
	return reasonIf(float64(s.Taken) < sampledShare*float64(s.Due), NoEvidence, "what nodes and machine used was sampled in %d of %d seconds", s.Taken, s.Due)
}
