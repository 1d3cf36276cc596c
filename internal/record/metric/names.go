package metric

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"skerry/internal/base/suggest"
)

var ErrUnknown = errors.New("no such metric")

type definition struct {
	unit Unit
	text string
}

var trialMetrics = map[string]definition{
	"goodput":           {Rate, "operations that ended ok, per second"},
	"throughput":        {Rate, "operations that ended, per second"},
	"availability":      {Share, "ok / (ok + failed + unknown + dropped)"},
	"ok":                {Number, "operations that the database executed"},
	"failed":            {Number, "operations that certainly had no effect"},
	"unknown":           {Number, "operations without an answer, which may have taken effect"},
	"dropped":           {Number, "operations that an open loop never sent, because too many were in flight"},
	"retries":           {Number, "retries by the driver or the database's client"},
	"traffic.total":     {Bytes, "bytes of packets on all links"},
	"traffic.data":      {Bytes, "bytes of packets on the links between data nodes"},
	"lost_writes":       {Number, "acknowledged writes that are missing"},
	"stale_copies":      {Number, "copies that are older than an acknowledged write"},
	"unexpected_values": {Number, "values that were never written there"},
	"unread_keys":       {Number, "records that could not be read back"},
	"host.cpu":          {Cores, "cores of the machine that were busy, on average"},
	"host.others":       {Cores, "cores of the machine that programs other than the run's used, on average"},
	"client.cpu":        {Cores, "cores that the load driver used, on average"},
	"cost.cpu":          {Cores, "cores that the trial's own processes used, on average"},
	"cost.memory":       {Bytes, "maximum memory of all nodes together"},
	"cost.traffic":      {Bytes, "bytes of packets between data nodes per operation that ended ok"},
	"mean":              {Time, "mean of the response time of the slowest kind of operation; `p50`, `p95`, `p99`, `p999` and `max` likewise"},
}

var eventMetrics = map[string]definition{
	"accepted":             {Time, "until the database's command for a change of membership reported success"},
	"complete":             {Time, "until the change of membership was complete"},
	"availability":         {Share, "ok / (ok + failed + unknown + dropped), until the next event"},
	"availability_time":    {Share, "share of the seconds whose goodput is near the baseline"},
	"unresponsive":         {Time, "seconds without any ok operation"},
	"unresponsive_periods": {Number, "number of periods without any ok operation"},
	"longest_unresponsive": {Time, "the longest of these periods"},
	"takeover":             {Time, "until the first write acknowledged after the event"},
	"recover":              {Time, "until goodput and p99 stay near the baseline again"},
	"dip":                  {Share, "share of the baseline that was missing in the worst second"},
	"dip_ops":              {Number, "operations that were missing until recovery"},
	"overshoot_ops":        {Number, "operations above the baseline"},
	"carried":              {Bytes, "bytes per second that the event's links carried just before, both directions"},
	"share":                {Share, "share of this traffic in that of all links"},
	"sla_violation":        {Time, "seconds that violate the service level"},
}

var operationNames = []string{"read", "update", "insert", "scan", "read_modify_write", "delete", "list", "stat", "create", "mkdir",
	"rename", "remove", "rmdir"}

// Name is a parsed name of a metric.
type Name struct {
	Unit Unit
	// Operation and Event are the subject of the metric, "" for the trial.
	Operation, Event string
	// Pool is the workload of the metric, if several run side by side.
	Pool string
	// Audit is true if only an audit measures it.
	Audit bool
}

// ParseName parses a name. The error wraps ErrUnknown and suggests the nearest name.
func ParseName(name string) (Name, error) {
	if f, ok := trialMetrics[name]; ok {
		return Name{Unit: f.unit, Audit: slices.Contains([]string{"lost_writes", "stale_copies", "unexpected_values", "unread_keys"}, name)}, nil
	}
	if slices.Contains(latencies, name) {
		return Name{Unit: Time}, nil
	}
	head, rest, _ := strings.Cut(name, ".")
	if head == "events" {
		if i := strings.LastIndexByte(rest, '.'); i > 0 {
			f, ok := eventMetrics[rest[i+1:]]
			if !ok {
				return Name{}, unknownError(name, rest[i+1:], keys(eventMetrics), func(s string) string { return "events." + rest[:i+1] + s })
			}
			return Name{Unit: f.unit, Event: rest[:i]}, nil
		}
		return Name{}, fmt.Errorf("%w %q: want events.NAME.recover, with the name or kind of an event", ErrUnknown, name)
	}
	if slices.Contains(operationNames, head) && rest != "" {
		return parseOperation(name, head, rest)
	}
	if rest != "" && !IsReserved(head) {
		if n, err := parsePool(rest); err == nil {
			n.Pool = head
			return n, nil
		}
	}
	return Name{}, UnknownError(name)
}

// UnknownError is the error for a name that no trial with a single workload has, with the nearest name.
func UnknownError(name string) error {
	known := keys(trialMetrics)
	for _, o := range operationNames {
		known = append(known, o+".p95", o+".p99")
	}
	return unknownError(name, name, known, func(s string) string { return s })
}

func parseOperation(name, operation, figure string) (Name, error) {
	switch {
	case isLatency(figure):
		return Name{Unit: Time, Operation: operation}, nil
	case figure == "count" || figure == "failed":
		return Name{Unit: Number, Operation: operation}, nil
	}
	return Name{}, unknownError(name, figure, append(slices.Clone(latencies), "count", "failed"),
		func(s string) string { return operation + "." + s })
}

func isLatency(figure string) bool {
	return slices.Contains(latencies, strings.TrimPrefix(figure, "service."))
}

// parsePool parses the figure of one of several workloads: a figure of a trial that each workload has, a latency of all
// its operations, or a figure of one operation.
func parsePool(figure string) (Name, error) {
	if f, ok := trialMetrics[figure]; ok && slices.Contains(poolMetrics, figure) {
		return Name{Unit: f.unit}, nil
	}
	if isLatency(figure) {
		return Name{Unit: Time}, nil
	}
	if operation, rest, _ := strings.Cut(figure, "."); slices.Contains(operationNames, operation) {
		return parseOperation(figure, operation, rest)
	}
	return Name{}, ErrUnknown
}

var poolMetrics = []string{"goodput", "throughput", "availability", "ok", "failed", "unknown", "dropped", "client.cpu"}

// IsReserved reports whether a workload must not have the name, because figures have it.
func IsReserved(name string) bool {
	if slices.Contains(operationNames, name) || name == "events" || name == "service" {
		return true
	}
	return slices.ContainsFunc(slices.Collect(maps.Keys(trialMetrics)), func(figure string) bool {
		head, _, _ := strings.Cut(figure, ".")
		return head == name
	})
}

func unknownError(name, part string, known []string, whole func(string) string) error {
	if near := suggest.Nearest(part, known); near != "" {
		return fmt.Errorf("%w %q: did you mean %q?", ErrUnknown, name, whole(near))
	}
	slices.Sort(known)
	return fmt.Errorf("%w %q: want one of %s", ErrUnknown, name, strings.Join(known, ", "))
}

func keys(m map[string]definition) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}

// Doc documents a metric.
type Doc struct {
	Name, Text string
	Unit       Unit
}

// Docs documents all metrics: of a trial, of an operation (OPERATION stands for its name) and of an event (NAME stands
// for its name or kind).
func Docs() (ofTrial, ofOperation, ofEvent []Doc) {
	for _, name := range slices.Sorted(maps.Keys(trialMetrics)) {
		ofTrial = append(ofTrial, Doc{name, trialMetrics[name].text, trialMetrics[name].unit})
	}
	ofOperation = []Doc{{"OPERATION.count", "operations that ended", Number}, {"OPERATION.failed", "operations that failed", Number}}
	for _, l := range latencies {
		ofOperation = append(ofOperation, Doc{"OPERATION." + l, latencyTexts[l] +
			" of the response time: from the due time of the operation to its end", Time})
	}
	for _, l := range latencies {
		ofOperation = append(ofOperation, Doc{"OPERATION.service." + l, latencyTexts[l] + " of the service time: from sending to the answer",
			Time})
	}
	for _, name := range slices.Sorted(maps.Keys(eventMetrics)) {
		ofEvent = append(ofEvent, Doc{"events.NAME." + name, eventMetrics[name].text, eventMetrics[name].unit})
	}
	return ofTrial, ofOperation, ofEvent
}

// Operations are the names for which OPERATION stands.
func Operations() []string { return slices.Clone(operationNames) }

var latencyTexts = map[string]string{"mean": "mean", "p50": "median", "p95": "95th percentile", "p99": "99th percentile",
	"p999": "99.9th percentile", "max": "maximum"}
