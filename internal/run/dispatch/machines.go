package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"skerry/internal/record"
)

// clockSlack is the clock difference that is not reported; NTP keeps machines closer.
const clockSlack = 2 * time.Second

// checkMachine warns once per machine about a wrong clock or another build of skerry.
func (s *dispatcher) checkMachine(t record.Trial, seen time.Time) error {
	if t.Machine == nil {
		return nil
	}
	var found []string
	if off := clockOffset(t, s.earliestStart(t), seen); off != 0 {
		found = append(found, fmt.Sprintf("the clock of %s is %s this machine's by at least %s; its records use its own clock",
			t.Machine.Name, formatDirection(off), off.Abs().Round(time.Second)))
	}
	if was := s.writer.Run().Versions.Program; was != "" && t.Machine.Program != "" && t.Machine.Program != was {
		found = append(found, fmt.Sprintf("skerry on %s is another build of the same version: SHA-256 %.12s, here %.12s",
			t.Machine.Name, t.Machine.Program, was))
	}
	for _, text := range found {
		key := fmt.Sprintf("%s %.30s", t.Machine.Name, text) // without the offset, which varies
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

// earliestStart returns the earliest possible start of a trial by this machine's clock. An earlier process
// may have submitted the attempt.
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

// clockOffset returns how far at least a trial's clock is ahead of this machine's, negative if behind, 0 if
// unknown. The trial ran between its submission and the collection of its result, so other times reveal
// another clock:
//
//	submitted ├──────── the trial ────────┤ collected     this clock
//	                started ├─────┤ ended                 its clock, hours ahead or behind
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

// machineHealth finds machines whose tasks end without results while other machines measure. A machine with
// a full disk ends each task within a second, and would otherwise consume the whole queue.
type machineHealth struct {
	emptyTasks  map[string]int // consecutive tasks without results, by machine
	anyMeasured bool           // some machine has measured
}

// maxEmptyTasks is the number of such tasks that excludes a machine; a single one may have failed by
// itself.
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

func (b *machineHealth) faulty() []string {
	if !b.anyMeasured {
		return nil
	}
	all := slices.Sorted(maps.Keys(b.emptyTasks))
	return slices.DeleteFunc(all, func(where string) bool { return b.emptyTasks[where] < maxEmptyTasks })
}
