package webdata

import "skerry/internal/record"

const goodput = "goodput"

// metrics are what trials are compared by.
var metrics = []Metric{
	{goodput, "Goodput", "ops", "higher"},
	{"throughput", "Throughput", "ops", "higher"},
	{"mean", "Latency, mean", "us", "lower"},
	{"p50", "Latency, median", "us", "lower"},
	{"p95", "Latency, p95", "us", "lower"},
	{"p99", "Latency, p99", "us", "lower"},
	{"p999", "Latency, p99.9", "us", "lower"},
	{"errors", "Operations that did not end ok", "share", "lower"},
	{"traffic", "Bytes transferred", "bytes", "lower"},
	{"traffic_op", "Bytes transferred for each operation", "bytes", "lower"},
	{"recover", "Slowest recovery", "s", "lower"},
	{"setup", "Time to set up", "s", ""},
	{"host_cpu", "CPU of the whole machine", "cores", ""},
}

// valuesOf are a trial's metrics; latencies are response times of the operation named, those
// of its own histogram. A trial without events has no recovery.
func valuesOf(t record.Trial, operation string) map[string]num {
	o := t.Outcomes
	v := map[string]num{goodput: num(t.Goodput), "throughput": num(t.Throughput), "setup": num(t.SetupS), "host_cpu": num(t.Fidelity.HostCPU)}
	if ended := o.OK + o.Failed + o.Unknown + o.Dropped; ended > 0 {
		v["errors"] = num(float64(ended-o.OK) / float64(ended))
	}
	if s, ok := t.Operations[operation]; ok && s.Count > 0 {
		l := s.Response
		if l.Max <= 0 {
			l = s.Service
		}
		v["mean"], v["p50"], v["p95"], v["p99"], v["p999"] = num(l.Mean), num(l.P50), num(l.P95), num(l.P99), num(l.P999)
	}
	if t.Traffic.TotalBytes > 0 {
		v["traffic"] = num(t.Traffic.TotalBytes)
		if o.OK > 0 {
			v["traffic_op"] = num(float64(t.Traffic.TotalBytes) / float64(o.OK))
		}
	}
	for _, h := range t.Events {
		if h.Recovery.BaselineOps > 0 {
			v["recover"] = max(v["recover"], num(h.Recovery.RecoverS))
		}
	}
	return v
}
