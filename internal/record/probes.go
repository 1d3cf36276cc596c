package record

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// ProbeStats describes one kind of operation of the short jobs: the 95th percentile of each job, in microseconds.
type ProbeStats struct {
	Operation string
	P95US     []float64 // of each job, as they began; 0 of one without such an operation
	// BeforeUS is the median of the jobs that ended before the first event, DuringUS of those that overlapped an event;
	// without events all jobs count in DuringUS. They are 0 without jobs.
	BeforeUS, DuringUS float64
	// HighestUS is the maximum over all jobs; the job began at HighestAtS seconds of the measurement.
	HighestUS, HighestAtS float64
}

// ProbeStats returns the statistics of the trial's short jobs, ordered by operation.
func (t Trial) ProbeStats() []ProbeStats {
	jobs := slices.SortedFunc(slices.Values(t.Probes), func(a, b Probe) int { return cmp.Compare(a.StartS, b.StartS) })
	names := map[string]bool{}
	for _, j := range jobs {
		for name := range j.Operations {
			names[name] = true
		}
	}
	var out []ProbeStats
	for _, name := range slices.Sorted(maps.Keys(names)) {
		seen := ProbeStats{Operation: name}
		var before, during []float64
		for _, j := range jobs {
			o := j.Operations[name]
			p95 := o.Latency().P95
			seen.P95US = append(seen.P95US, p95)
			if o.Count == 0 {
				continue
			}
			switch {
			case j.overlapsEvent(t.Events):
				during = append(during, p95)
			case j.endedBefore(t.Events):
				before = append(before, p95)
			}
			if p95 > seen.HighestUS {
				seen.HighestUS, seen.HighestAtS = p95, j.StartS
			}
		}
		seen.BeforeUS, seen.DuringUS = upperMedian(before), upperMedian(during)
		out = append(out, seen)
	}
	return out
}

func (p Probe) endedBefore(events []EventImpact) bool {
	return !slices.ContainsFunc(events, func(h EventImpact) bool { return p.StartS+p.DurationS > h.AtS })
}

func (p Probe) overlapsEvent(events []EventImpact) bool {
	return len(events) == 0 || slices.ContainsFunc(events, func(h EventImpact) bool {
		return p.StartS+p.DurationS > h.AtS &&
			p.StartS < h.EndS()
	})
}

// EndS is when the event ceased to be in force, in seconds since the measurement began: the completion of a change of
// membership, the reversal of a fault, else infinity.
func (h EventImpact) EndS() float64 {
	switch {
	case h.RevertedS != nil:
		return *h.RevertedS
	case h.CompleteS != nil && h.Effect != nil && h.Effect.Member != "":
		return h.AtS + *h.CompleteS
	}
	return math.Inf(1)
}

func upperMedian(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(values))[len(values)/2]
}
