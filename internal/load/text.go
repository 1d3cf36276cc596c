package load

import (
	"maps"
	"slices"

	"skerry/internal/load/mdtest"
	"skerry/internal/load/ycsb"
)

// OperationNames is the order in which operations are shown.
func (t Totals) OperationNames() []string {
	order := []string{}
	for k := range ycsb.Kinds {
		if _, ok := t.Operations[k.String()]; ok {
			order = append(order, k.String())
		}
	}
	for k := range mdtest.Kinds {
		if _, ok := t.Operations[k.String()]; ok {
			order = append(order, k.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Operations)) {
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	return order
}

// Series are the operations as YCSB shows them. interval is ycsb.IntervalOp for the
// service times, IntervalIntended for the response times, IntervalBoth for both.
func (t Totals) Series(interval string) (out []ycsb.Series) {
	shown := func(prefix string, pick func(Latency) Histogram) {
		for _, name := range t.OperationNames() {
			op := t.Operations[name]
			if op.Ended() == 0 || name == verifySeries && prefix != "" {
				continue
			}
			s := ycsb.Series{Name: prefix + name, Latency: pick(op.Latency).Micros()}
			if prefix == "" {
				s.Returns = op.Returns
			}
			out = append(out, s)
			if failed := pick(op.FailedLatency); failed.Count() > 0 {
				out = append(out, ycsb.Series{Name: prefix + name + "-FAILED", Latency: failed.Micros()})
			}
		}
	}
	service := func(l Latency) Histogram { return l.Service }
	response := func(l Latency) Histogram { return l.Response }
	switch interval {
	case ycsb.IntervalIntended:
		shown("", response)
	case ycsb.IntervalBoth:
		shown("", service)
		shown("Intended-", response)
	default:
		shown("", service)
	}
	return out
}

// Report is the result as YCSB's text output has it.
func (r Result) Report(interval string, percentiles []float64) ycsb.Report {
	report := ycsb.Report{
		RunTime: r.Duration, OK: r.OK, Ended: r.Ended(),
		Series: r.Series(interval), Percentiles: percentiles,
		Figures: []ycsb.Figure{{Name: "Failed", Value: float64(r.Failed)}, {Name: "Unknown", Value: float64(r.Unknown)}},
	}
	add := func(name string, v float64) {
		if v > 0 {
			report.Figures = append(report.Figures, ycsb.Figure{Name: name, Value: v})
		}
	}
	add("Dropped", float64(r.Dropped))
	add("Retries", float64(r.Retries))
	add("ClientCPU(cores)", r.ClientCPU())
	add("ClientLate99(us)", float64(r.Late.Quantile(0.99).Microseconds()))
	return report
}
