package report

import (
	"maps"

	"skerry/internal/evidence/stats"
	"skerry/internal/record"
)

// Names of the metrics that sentences and charts of this package speak of.
const (
	metricGoodput      = "goodput"
	metricThroughput   = "throughput"
	metricTraffic      = "traffic"
	metricPerOperation = "traffic_op"
	metricData         = "data"
	metricDataPer      = "data_op"
)

// ValuesOf are the metrics that a trial is compared with others by; latencies are response times
// in microseconds of the operation named, those of its own histogram. A trial without events has
// no recovery.
func ValuesOf(t record.Trial, operation string) map[string]float64 {
	o := t.Outcomes
	v := map[string]float64{metricGoodput: t.Goodput, metricThroughput: t.Throughput, "setup": t.SetupS, "host_cpu": t.Fidelity.HostCPU}
	if ended := o.OK + o.Failed + o.Unknown + o.Dropped; ended > 0 {
		v["errors"] = float64(ended-o.OK) / float64(ended)
	}
	maps.Copy(v, latenciesOf(t, operation))
	if bytes := float64(t.Traffic.TotalBytes); bytes > 0 {
		v[metricTraffic] = bytes
		if o.OK > 0 {
			v[metricPerOperation] = bytes / float64(o.OK)
		}
	}
	if bytes := float64(t.Traffic.DataBytes); bytes > 0 {
		v[metricData] = bytes
		if o.OK > 0 {
			v[metricDataPer] = bytes / float64(o.OK)
		}
	}
	for _, h := range t.Events {
		if h.Recovery.BaselineOps > 0 {
			v["recover"] = max(v["recover"], h.Recovery.RecoverS)
		}
	}
	return v
}

// latenciesOf are the metrics of one kind of operation in a trial; none where it had none.
func latenciesOf(t record.Trial, operation string) map[string]float64 {
	s := t.Operations[operation]
	if s.Count == 0 {
		return nil
	}
	l := s.Latency()
	return map[string]float64{"mean": l.Mean, "p50": l.P50, "p95": l.P95, "p99": l.P99, "p999": l.P999}
}

// estimatesOf are the means of the trials' metrics, each over the trials that have it.
func estimatesOf(trials []record.Trial, operation string) map[string]stats.Estimate {
	return estimate(trials, func(t record.Trial) map[string]float64 { return ValuesOf(t, operation) })
}

// estimate makes means of what trials have, by its name.
func estimate(trials []record.Trial, of func(record.Trial) map[string]float64) map[string]stats.Estimate {
	values := map[string][]float64{}
	for _, t := range trials {
		for name, v := range of(t) {
			values[name] = append(values[name], v)
		}
	}
	estimates := make(map[string]stats.Estimate, len(values))
	for name, list := range values {
		estimates[name] = stats.Of(list)
	}
	return estimates
}
