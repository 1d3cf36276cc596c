package runner

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/experiment"
	"skerry/internal/record"
	"skerry/internal/run/trial"
)

func planTrials(e experiment.Experiment) []record.Planned {
	cells := e.Plan()
	perRepetition := len(cells) / max(1, e.Repetitions)
	out := make([]record.Planned, len(cells))
	number := map[string]int{}
	for i, c := range cells {
		cell := (c.ID-1)%perRepetition + 1
		task := taskKey(e.Spread, c, cell)
		if _, known := number[task]; !known {
			number[task] = len(number) + 1
		}
		out[i] = record.Planned{
			ID: c.ID, Cell: cell, Repetition: c.Repetition, Task: number[task],
			Seed: c.Seed, Parameters: c.Parameters,
		}
	}
	return out
}

// taskKey returns the same text for trials of one task. Trials of a repetition that share a cluster are
// always one task.
func taskKey(spread string, c experiment.Cell, cell int) string {
	footing := c.Experiment.ClusterKey()
	switch {
	case c.Experiment.Database.Cluster != nil: // at the same time, they would disturb each other
		return "clusters of the user"
	case spread == experiment.SpreadRepetition:
		return fmt.Sprint(c.Repetition)
	case spread == experiment.SpreadCell && footing != "":
		return footing
	case spread == experiment.SpreadCell:
		return fmt.Sprint(cell)
	case footing != "":
		return fmt.Sprint(c.Repetition, footing)
	}
	return fmt.Sprint(c.Repetition, " ", cell)
}

// clusterSharing returns, by cluster key, the largest scale and one trial of each workload.
func clusterSharing(plan []experiment.Cell) map[string]trial.Sharing {
	all := map[string]trial.Sharing{}
	for _, c := range plan {
		footing := c.Experiment.ClusterKey()
		if footing == "" {
			continue
		}
		s := all[footing]
		s.FarthestScale = max(s.FarthestScale, c.Experiment.Scale)
		if !slices.ContainsFunc(s.Workloads, func(w experiment.Cell) bool {
			return reflect.DeepEqual(w.Experiment.Pools(), c.Experiment.Pools())
		}) {
			s.Workloads = append(s.Workloads, c)
		}
		all[footing] = s
	}
	return all
}

func checkPlan(recorded, now []record.Planned) error {
	same := len(recorded) == len(now)
	for i := 0; same && i < len(now); i++ {
		a, b := recorded[i], now[i]
		same = a.ID == b.ID && a.Seed == b.Seed && reflect.DeepEqual(encodeParameters(a.Parameters), encodeParameters(b.Parameters))
	}
	if !same {
		return advice.With(fmt.Errorf("the experiment's plan has changed since the run was started"),
			"start a new run; the old one is kept")
	}
	return nil
}

func checkFiles(recorded, now map[string]string) error {
	for _, path := range slices.Sorted(maps.Keys(recorded)) {
		if now[path] != recorded[path] {
			return advice.With(fmt.Errorf("file %s of the experiment has changed since the run was started", path),
				"restore it, or start a new run; the old one is kept")
		}
	}
	return nil
}

// encodeParameters makes parameters comparable with those read from run.json.
func encodeParameters(p map[string]any) map[string]string {
	out := make(map[string]string, len(p))
	for k, v := range p {
		text, err := json.Marshal(v)
		if err != nil { // only scalars are parameters
			text = fmt.Append(nil, v)
		}
		out[k] = string(text)
	}
	return out
}

func (r *run) describe(p record.Planned) string {
	var parts []string
	for _, axis := range r.cells[p.ID].Axes {
		parts = append(parts, fmt.Sprintf("%s %v", axis, p.Parameters[axis]))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func (r *run) report(which string, p record.Planned, t record.Trial) {
	head := which + " " + r.describe(p)
	switch t.State {
	case record.TrialFailed:
		r.Progress.Linef("%s  FAILED: %s", head, t.Error)
	case record.TrialInterrupted:
		r.Progress.Linef("%s  interrupted", head)
	default:
		r.Progress.Linef("%s  %.0f ops/s (%s, %.0f s)  %s", head, t.Goodput, t.Stopped, t.DurationS, t.Verdict.State)
		for _, why := range t.Verdict.Reasons {
			r.Progress.Linef("      suspect: %s", why)
		}
		for _, n := range t.Verdict.Notes {
			r.Progress.Linef("      %s", n)
		}
		for _, a := range t.Assertions {
			if !a.Held {
				r.Progress.Linef("      failed assertion: %s (measured %s)", a.Text, cmp.Or(a.Value, "not measured"))
			}
		}
	}
}

func formatTimeLeft(d time.Duration) string {
	switch {
	case d >= 2*time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	case d >= 2*time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
