package results

import (
	"fmt"
	"slices"
	"strings"

	"skerry/internal/record"
	"skerry/internal/record/metric"
)

const (
	// ChangePrefix begins a node's membership changes: "change.Pune.leave.complete".
	changePrefix = "change."
	// MostSuffix ends the maximum over repeated events.
	mostSuffix = ".most"
	// TimesSuffix ends the number of repeated events.
	timesSuffix = ".times"
	// TurnPrefix requests each occurrence of an event separately: "turn.cut" adds cut.01.share and
	// cut.01.unresponsive.
	turnPrefix = "turn."

	eventPrefix = "events."
)

// addMetrics adds a trial's metrics. Repeated events are averaged over those that have the metric.
func (r Row) addMetrics(values []metric.Value, keep []string) {
	n := map[string]float64{}
	for _, v := range values {
		if !isWanted(v.Name, keep) || v.LowerBound {
			continue
		}
		n[v.Name]++
		r.Figures[v.Name] += (v.V - r.Figures[v.Name]) / n[v.Name]
		if strings.HasPrefix(v.Name, eventPrefix) && isWanted(v.Name+mostSuffix, keep) {
			r.Figures[v.Name+mostSuffix] = max(r.Figures[v.Name+mostSuffix], v.V)
		}
	}
}

// addEventCounts counts events by name and kind, those followed by an unresponsive period, and
// those on links in use.
func (r Row) addEventCounts(all []record.EventImpact, keep []string) {
	for _, h := range all {
		names := []string{h.Name}
		if h.Kind != h.Name {
			names = append(names, h.Kind)
		}
		for _, name := range names {
			if name := eventPrefix + name + timesSuffix; isWanted(name, keep) {
				r.Figures[name]++
			}
			stalled := min(1, float64(h.Recovery.UnresponsivePeriods))
			if name := eventPrefix + name + ".stalled"; isWanted(name, keep) {
				r.Figures[name] += stalled
			}
			if used := eventPrefix + name + ".used"; h.Carried != nil && isWanted(used, keep) {
				r.addUsedLinks(used, stalled, h)
			}
		}
	}
}

func (r Row) addUsedLinks(name string, stalled float64, h record.EventImpact) {
	count, without := r.Figures[name], r.Figures[name+"_unresponsive"]
	if h.Carried.InUse() {
		count++
		without += (h.Recovery.UnresponsiveS - without) / count
	} else {
		stalled = 0
	}
	r.Figures[name] = count
	r.Figures[name+"_stalled"] += stalled
	r.Figures[name+"_unresponsive"] = without
}

func (r Row) addOccurrences(all []record.EventImpact, keep []string) {
	count := map[string]int{}
	for _, h := range all {
		if !slices.Contains(keep, turnPrefix+h.Name) {
			continue
		}
		count[h.Name]++
		of := fmt.Sprintf("%s.%02d.", h.Name, count[h.Name])
		r.Figures[of+"at"] = h.AtS
		r.Figures[of+"unresponsive"] = h.Recovery.UnresponsiveS
		r.Figures[of+"longest_unresponsive"] = h.Recovery.LongestUnresponsiveS
		if h.Carried != nil {
			r.Figures[of+"carried"], r.Figures[of+"share"] = h.Carried.Rate, h.Carried.Share
		}
	}
}

func (r Row) addMembershipChanges(d *record.Dir) error {
	happened, err := d.Events(r.Trial)
	if err != nil {
		return fmt.Errorf("trial %d: %w", r.Trial, err)
	}
	for _, e := range record.PerMember(happened) {
		if e.Effect == nil || e.Effect.Member == "" {
			continue
		}
		node := changePrefix + strings.Join(e.Targets, "+") + "."
		r.addStep(node+string(e.Effect.Member), e.Apply)
		r.addStep(node+string(e.Effect.Member.Opposite()), e.Revert)
	}
	return nil
}

func (r Row) addStep(name string, s *record.Step) {
	if s == nil || s.Began == nil {
		return
	}
	if s.Accepted != nil {
		r.Figures[name+".accepted"] = s.Accepted.Seconds() - s.Began.Seconds()
	}
	if s.Completed != nil {
		r.Figures[name+".complete"] = s.Completed.Seconds() - s.Began.Seconds()
	}
}
