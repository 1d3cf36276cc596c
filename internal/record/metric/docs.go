package metric

import (
	"maps"
	"slices"
)

// Doc is what the documentation says of a metric.
type Doc struct {
	Name, Text string
	Unit       Unit
}

// Docs are all metrics: those of a trial, of an operation (OPERATION stands for its name) and of
// an event (NAME for its name or kind), each group in alphabetical order.
func Docs() (ofTrial, ofOperation, ofEvent []Doc) {
	for _, name := range slices.Sorted(maps.Keys(plain)) {
		ofTrial = append(ofTrial, Doc{name, plain[name].text, plain[name].unit})
	}
	ofOperation = []Doc{{"OPERATION.count", "operations that ended", Number}, {"OPERATION.failed", "those of them that failed", Number}}
	for _, l := range latencies {
		ofOperation = append(ofOperation, Doc{"OPERATION." + l, latencyTexts[l] + " of the response time: from the moment at which the operation was due to its end", Time})
	}
	for _, l := range latencies {
		ofOperation = append(ofOperation, Doc{"OPERATION.service." + l, latencyTexts[l] + " of the service time: from sending to the answer", Time})
	}
	for _, name := range slices.Sorted(maps.Keys(ofEvents)) {
		ofEvent = append(ofEvent, Doc{"events.NAME." + name, ofEvents[name].text, ofEvents[name].unit})
	}
	return ofTrial, ofOperation, ofEvent
}

// Operations are the names that OPERATION stands for.
func Operations() []string { return slices.Clone(operations) }

var latencyTexts = map[string]string{"mean": "mean", "p50": "median", "p95": "95th percentile", "p99": "99th percentile", "p999": "99.9th percentile", "max": "maximum"}
