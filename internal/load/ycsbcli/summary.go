package ycsbcli

import (
	"skerry/internal/load"
	"skerry/internal/record"
)

// summary is what --json prints; its parts are those of summary.json.
type summary struct {
	Phase      load.Phase                         `json:"phase"`
	Database   string                             `json:"database"`
	Seed       uint64                             `json:"seed"`
	Arrival    load.Arrival                       `json:"arrival"`
	AfterStall load.AfterStall                    `json:"after_stall"`
	Threads    int                                `json:"threads"`
	Target     float64                            `json:"target_ops_s"`
	Stopped    string                             `json:"stopped"`
	DurationS  float64                            `json:"duration_s"`
	WarmupS    float64                            `json:"warmup_s"`
	Throughput float64                            `json:"throughput_ops_s"`
	Goodput    float64                            `json:"goodput_ops_s"`
	Outcomes   record.Outcomes                    `json:"outcomes"`
	Retries    int64                              `json:"retries"`
	Errors     []record.ErrorCount                `json:"errors,omitempty"`
	Operations map[string]record.OperationSummary `json:"operations"`
	Returns    map[string]map[string]int64        `json:"returns"`
	ClientCPU  float64                            `json:"client_cpu_cores"`
	LateP99US  float64                            `json:"client_late_p99_us"`
	Warnings   []string                           `json:"warnings,omitempty"`
	// Keys are what the keys of a zipfian workload that inserts were drawn for.
	Keys *record.Keys `json:"keys,omitempty"`
	// Verified is set after a load phase.
	Verified *load.Verification `json:"verified,omitempty"`
	// Unacknowledged records of a load phase that did not end well.
	Unacknowledged     int64    `json:"unacknowledged,omitempty"`
	UnacknowledgedKeys []string `json:"unacknowledged_keys,omitempty"`
}

func summarise(o Options, r load.Result, v *load.Verification) summary {
	s := summary{
		Phase: r.Spec.Phase, Database: o.Database, Seed: r.Spec.Seed, Arrival: r.Spec.Arrival, AfterStall: r.Spec.AfterStall,
		Threads: r.Spec.Threads, Target: r.Spec.Target, Stopped: r.Stopped,
		DurationS: r.Duration.Seconds(), WarmupS: r.Warmup.Seconds(), Throughput: r.Throughput(), Goodput: r.Goodput(),
		Outcomes: record.Outcomes{OK: r.OK, Failed: r.Failed, Unknown: r.Unknown, Dropped: r.Dropped}, Retries: r.Retries,
		Operations: map[string]record.OperationSummary{}, Returns: map[string]map[string]int64{},
		ClientCPU: r.ClientCPU(), LateP99US: micros(r.Late.Quantile(0.99)), Warnings: r.Warnings,
		Keys: r.Keys(), Verified: v, Unacknowledged: r.Unacknowledged, UnacknowledgedKeys: r.UnacknowledgedKeys,
	}
	for _, e := range r.Errors {
		s.Errors = append(s.Errors, record.ErrorCount{Operation: e.Operation, Class: e.Class, Node: e.Node, Count: e.Count, Example: e.Example})
	}
	for name, op := range r.Operations {
		s.Operations[name] = record.OperationSummary{
			Count: op.OK, Failed: op.Failed + op.Unknown, Service: latencySummary(op.Latency.Service), Response: latencySummary(op.Latency.Response),
		}
		s.Returns[name] = op.Returns
	}
	return s
}

func latencySummary(h load.Histogram) record.Latency {
	return record.Latency{
		Mean: micros(h.Mean()), P50: micros(h.Quantile(0.5)), P95: micros(h.Quantile(0.95)),
		P99: micros(h.Quantile(0.99)), P999: micros(h.Quantile(0.999)), Max: micros(h.Max()),
	}
}

func micros[T ~int64](ns T) float64 { return float64(ns) / 1e3 }
