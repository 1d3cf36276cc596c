package results

import (
	"fmt"
	"slices"
	"strings"

	"skerry/internal/record"
	"skerry/internal/record/metric"
)

const (
	// Change begins the figures of one node's changes of membership: "change.Pune.leave.complete".
	ChangePrefix = "change."
	// Most ends the figure of the event that had the most, where one of a name happened several times.
	MostSuffix = ".most"
	// Times ends the figure of how often that was.
	TimesSuffix = ".times"
	// Turn begins what asks for every time of an event by itself: "turn.cut" gives cut.01.share, cut.01.unresponsive.
	TurnPrefix = "turn."

	eventPrefix = "events."
)

// addMetrics are a trial's, as assertions call them. Of events of one name, which give a name several times, they are
// the mean over those that have it, with the most of any beside it, and how often they happened.
func (r Row) addMetrics(values []metric.Value, keep []string) {
	n := map[string]float64{}
	for _, v := range values {
		if !isWanted(v.Name, keep) || v.LowerBound {
			continue
		}
		n[v.Name]++
		r.Figures[v.Name] += (v.V - r.Figures[v.Name]) / n[v.Name]
		if strings.HasPrefix(v.Name, eventPrefix) && isWanted(v.Name+MostSuffix, keep) {
			r.Figures[v.Name+MostSuffix] = max(r.Figures[v.Name+MostSuffix], v.V)
		}
	}
}

// addEventCounts adds how often events of a name, or a kind, happened, and after how many nothing answered for a while; the
// same of those whose links were in use, with the seconds without an answer, the mean over them.
func (r Row) addEventCounts(all []record.EventImpact, keep []string) {
	for _, h := range all {
		names := []string{h.Name}
		if h.Kind != h.Name {
			names = append(names, h.Kind)
		}
		for _, name := range names {
			if name := eventPrefix + name + TimesSuffix; isWanted(name, keep) {
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

// addOccurrences adds each time that an event happened which keep asks for.
func (r Row) addOccurrences(all []record.EventImpact, keep []string) {
	count := map[string]int{}
	for _, h := range all {
		if !slices.Contains(keep, TurnPrefix+h.Name) {
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

// addMembershipChanges adds how long each node's changes of membership took until they were accepted, and complete, in seconds.
func (r Row) addMembershipChanges(d *record.Dir) error {
	happened, err := d.Events(r.Trial)
	if err != nil {
		return fmt.Errorf("trial %d: %w", r.Trial, err)
	}
	for _, e := range happened {
		if e.Effect == nil || e.Effect.Member == "" {
			continue
		}
		node := ChangePrefix + strings.Join(e.Targets, "+") + "."
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
