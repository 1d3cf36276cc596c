package verdict

import (
	"cmp"
	"fmt"

	"skerry/internal/evidence/bottleneck"
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
