package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"skerry/internal/record"
)

// clockSlack is by how much clocks may differ before it is told: NTP keeps machines closer, and times
// of a second are compared by nobody.
const clockSlack = 2 * time.Second

// checkMachine tells once of a machine what is odd about it, and notes it in the run's warnings.
func (s *dispatcher) checkMachine(t record.Trial, seen time.Time) error {
	if t.Machine == nil {
		return nil
	}
	var found []string
	if off := clockOffset(t, s.earliestStart(t), seen); off != 0 {
		found = append(
			found,
			fmt.Sprintf(
				"the clock of %s is %s this machine's by %s or more: times in its records are its own", t.Machine.Name,
				formatDirection(off), off.Abs().Round(time.Second),
			),
		)
	}
	if was := s.writer.Run().Versions.Program; was != "" && t.Machine.Program != "" && t.Machine.Program != was {
		found = append(
			found,
			fmt.Sprintf(
				"skerry on %s is another build of the same version: its SHA-256 sum begins with %.12s, this one's with %.12s",
				t.Machine.Name, t.Machine.Program, was,
			),
		)
	}
	for _, text := range found {
		key := fmt.Sprintf("%s %.30s", t.Machine.Name, text) // by how much it is off differs each time
		if s.reported[key] {
			continue
		}
		s.reported[key] = true
		s.Progress.Linef("note: %s", text)
		if err := s.writer.Update(func(r *record.Run) {
			if !slices.Contains(r.Warnings, text) {
				r.Warnings = append(slices.Clone(r.Warnings), text)
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// earliestStart is when a trial can have begun at the earliest, by this machine's clock: an attempt that an earlier
// process asked for may have landed.
func (s *dispatcher) earliestStart(t record.Trial) time.Time {
	run := s.writer.Run()
	if len(run.Resumed) > 0 {
		return run.Started
	}
	if h := s.byTrial[t.ID]; h != nil {
		return s.firstSubmitted[h.task.ID]
	}
	return run.Started
}

// clockOffset is by how much a trial's clock is at least ahead of this machine's, negative where it is behind, 0
// where nothing tells. The trial ran between being handed over and being seen, so that
// times outside of that are of another clock:
//
//	handed over ├──────── the trial ────────┤ seen        this clock
//	                  started ├─────┤ ended               its clock, hours ahead or behind
func clockOffset(t record.Trial, handed, seen time.Time) time.Duration {
	ended := t.Started.Add(time.Duration((t.SetupS + t.WarmupS + t.DurationS) * float64(time.Second)))
	switch {
	case handed.Sub(t.Started) > clockSlack:
		return t.Started.Sub(handed)
	case ended.Sub(seen) > clockSlack:
		return ended.Sub(seen)
	}
	return 0
}

func formatDirection(off time.Duration) string {
	if off > 0 {
		return "ahead of"
	}
	return "behind"
}

// machineHealth tells the machines from which no results come though others measure: one whose disk is full ends each task within
// a second, and would take in all that wait while others do one.
type machineHealth struct {
	emptyTasks  map[string]int // tasks that ended by themselves without results, by machine
	anyMeasured bool           // some machine has measured
}

// maxEmptyTasks is how many such tasks make a machine barren: one may have itself to blame.
const maxEmptyTasks = 2

func (b *machineHealth) recordEnd(where string, measured bool) {
	if where == "" {
		return
	}
	if measured {
		b.anyMeasured = true
		delete(b.emptyTasks, where)
		return
	}
	if b.emptyTasks == nil {
		b.emptyTasks = map[string]int{}
	}
	b.emptyTasks[where]++
}

// faulty are those that get no more tasks.
func (b *machineHealth) faulty() []string {
	if !b.anyMeasured {
		return nil
	}
	all := slices.Sorted(maps.Keys(b.emptyTasks))
	return slices.DeleteFunc(all, func(where string) bool { return b.emptyTasks[where] < maxEmptyTasks })
}
