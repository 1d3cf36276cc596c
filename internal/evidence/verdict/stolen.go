package verdict

import (
	"fmt"
	"math"

	"skerry/internal/record"
)

// What must be left of a measurement without its marked stretches, to say that they changed
// nothing: so much of it, and so many operations, of which a percentile can be told.
const (
	leastLeft       = 0.1
	leastOperations = 200
)

// harmless tells whether a measurement's figures are the same without the stretches in which
// processors were taken from the driver.
func (l Limits) harmless(s record.Stolen) bool {
	return s.Share > 0 && 1-s.Share >= leastLeft && s.Left >= leastOperations && s.Moved <= l.Moved
}

// driverLate tells lateness apart: processors were taken from the driver, which is judged by
// what that changed; the driver had used its own up, which would come again; or neither is known.
func (l Limits) driverLate(late float64, s record.Stolen) []reason {
	if late <= l.ClientLateUS {
		return nil
	}
	what := fmt.Sprintf("the driver was more than %.1f ms late 1 %% of the time", late/1000)
	limit := fmt.Sprintf("(limit %.1f ms)", l.ClientLateUS/1000)
	switch {
	case s.LateLeftP99US <= l.ClientLateUS && l.harmless(s):
		return nil
	case s.Share > 0 && s.LateLeftP99US <= l.ClientLateUS:
		return one(true, DriverLate, "%s, since processors were taken from it %s: %s", what, limit, moved(s))
	case s.LateNotFullP99US <= l.ClientLateUS:
		return one(true, DriverCPU, "%s, in seconds in which its own cores were full %s: the client, not the database, was the limit", what, limit)
	}
	return one(true, DriverLate, "%s: latencies hold the client's own delay %s", what, limit)
}

// stolen is what is known of processors that were taken: without that, lateness has no reason.
func (e Evidence) stolen() record.Stolen {
	if e.Stolen.status != present {
		return record.Stolen{LateLeftP99US: math.Inf(1), LateNotFullP99US: math.Inf(1)}
	}
	return e.Stolen.figure
}

// disturbed judges what processors that were taken changed, whoever was late: servers that waited for one
// delay an answer without the driver being late. Where that is a reason already, it is not one twice. Trials
// of the run that share the machine are no reason by that alone, but a note.
func (l Limits) disturbed(e Evidence, s record.Stolen) []reason {
	if s.OwnTrials || !l.changed(s) ||
		len(l.driverLate(e.DriverLate.figure, s))+len(l.steal(e.Steal.figure, s)) > 0 {
		return nil
	}
	return []reason{because(Disturbed, "processors were taken from the trial: %s (limit %.0f %%)", moved(s), 100*l.Moved)}
}

// changed tells whether a figure is another without the marked stretches.
func (l Limits) changed(s record.Stolen) bool {
	return s.Share > 0 && s.Left >= leastOperations && s.Moved > l.Moved
}

// steal judges processor time that the hypervisor took by what it changed.
func (l Limits) steal(share Share, s record.Stolen) []reason {
	return one(share.Of > l.StealShare && !l.harmless(s), Steal, "the hypervisor took %.0f %% of the CPU time of %s for others: %s", 100*share.Of, machineOf(share.Machine), moved(s))
}

// moved says what processors that were taken changed.
func moved(s record.Stolen) string {
	if s.Share == 0 {
		return "what that changed is not known"
	}
	if 1-s.Share < leastLeft || s.Left < leastOperations {
		return fmt.Sprintf("%.0f %% of the measurement is marked, and too little is left to compare with", 100*s.Share)
	}
	return fmt.Sprintf("without the marked %.0f %% of the measurement %s moves by %.1f %%", 100*s.Share, s.MovedBy, 100*s.Moved)
}

// notes are what would have made a trial suspect, and did not change its figures.
func (l Limits) notes(e Evidence) []string {
	s := e.stolen()
	late := e.DriverLate.figure > l.ClientLateUS && l.driverLate(e.DriverLate.figure, s) == nil
	stolen := e.Steal.figure.Of > l.StealShare && l.steal(e.Steal.figure, s) == nil
	if s.OwnTrials && l.changed(s) {
		return []string{"other trials of the run took processors: " + moved(s)}
	}
	if !late && !stolen {
		return nil
	}
	return []string{"processors were taken away, which changed nothing: " + moved(s)}
}
