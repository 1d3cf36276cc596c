package record

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Probed is what the short jobs beside a trial's workload saw of one kind of operation, as FAULTS tells it: the 95th
// percentile of each job, in microseconds.
type Probed struct {
	Operation string
	P95US     []float64 // of each job, as they began; 0 of one without such an operation
	// BeforeUS is the median of the jobs that ended before the first event, DuringUS of those that ran while an event
	// was in force; without an event all are in DuringUS. They are 0 where there were none.
	BeforeUS, DuringUS float64
	// HighestUS is the highest of any job, which began at HighestAtS seconds of the measurement.
	HighestUS, HighestAtS float64
}

// Probed are the kinds of operations of the trial's short jobs, by name.
func (t Trial) Probed() []Probed {
	jobs := slices.SortedFunc(slices.Values(t.Probes), func(a, b Probe) int { return cmp.Compare(a.StartS, b.StartS) })
	names := map[string]bool{}
	for _, j := range jobs {
		for name := range j.Operations {
			names[name] = true
		}
	}
	var out []Probed
	for _, name := range slices.Sorted(maps.Keys(names)) {
		seen := Probed{Operation: name}
		var before, during []float64
		for _, j := range jobs {
			o := j.Operations[name]
			p95 := o.Latency().P95
			seen.P95US = append(seen.P95US, p95)
			if o.Count == 0 {
				continue
			}
			switch {
			case j.during(t.Events):
				during = append(during, p95)
			case j.before(t.Events):
				before = append(before, p95)
			}
			if p95 > seen.HighestUS {
				seen.HighestUS, seen.HighestAtS = p95, j.StartS
			}
		}
		seen.BeforeUS, seen.DuringUS = middle(before), middle(during)
		out = append(out, seen)
	}
	return out
}

// before tells whether the job had ended when the first event began.
func (p Probe) before(events []Happening) bool {
	return !slices.ContainsFunc(events, func(h Happening) bool { return p.StartS+p.DurationS > h.AtS })
}

// during tells whether any event was in force while the job ran, or whether there is none.
func (p Probe) during(events []Happening) bool {
	return len(events) == 0 || slices.ContainsFunc(events, func(h Happening) bool { return p.StartS+p.DurationS > h.AtS && p.StartS < h.OverS() })
}

// OverS is when the event was in force no longer, in seconds since the measurement began: a change of membership when
// it was complete, a fault when it had been taken back; infinite where that did not happen.
func (h Happening) OverS() float64 {
	switch {
	case h.RevertedS != nil:
		return *h.RevertedS
	case h.CompleteS != nil && h.Effect != nil && h.Effect.Member != "":
		return h.AtS + *h.CompleteS
	}
	return math.Inf(1)
}

// middle is the median, of an even number the higher of the two in the middle; 0 of none.
func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(values))[len(values)/2]
}
