package ycsb

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"skerry/internal/base/suggest"
)

var workloadProperties = []string{
	"table", "recordcount", "operationcount", "insertstart", "insertcount", "insertorder", "zeropadding",
	"fieldcount", "fieldlength", "minfieldlength", "fieldlengthdistribution", "fieldlengthhistogram", "fieldnameprefix",
	"readallfields", "readallfieldsbyname", "writeallfields", "dataintegrity",
	"readproportion", "updateproportion", "insertproportion", "scanproportion", "readmodifywriteproportion", "deleteproportion",
	"requestdistribution", "hotspotdatafraction", "hotspotopnfraction", "exponential.percentile", "exponential.frac",
	"minscanlength", "maxscanlength", "scanlengthdistribution", "workload",
}

var clientProperties = []string{
	"threadcount", "target", "maxexecutiontime", "label", "status", "status.interval", "measurement.interval",
	"hdrhistogram.percentiles", "hdrhistogram.fileoutput", "hdrhistogram.output.path",
}

const textExporter = "site.ycsb.measurements.exporter.TextMeasurementsExporter" // YCSB's default

// ignoredProperties are YCSB's other properties, with the value that matches Skerry's behaviour,
// and the reason why other values have no effect.
var ignoredProperties = map[string]struct{ same, why string }{
	"db":                                     {"", "the database is named elsewhere"},
	"dotransactions":                         {"true", "load and run are phases of their own"},
	"exporter":                               {textExporter, "figures are written as text or JSON"},
	"exportfile":                             {"", "figures are written to standard output or a run directory"},
	"spin.sleep":                             {"false", "threads sleep until an operation is due"},
	"measurementtype":                        {"hdrhistogram", "latencies are always recorded in HdrHistograms"},
	"measurement.trackjvm":                   {"false", "the client is not a Java program"},
	"measurement.histogram.verbose":          {"false", "latencies are always recorded in HdrHistograms"},
	"histogram.buckets":                      {"", "latencies are always recorded in HdrHistograms"},
	"timeseries.granularity":                 {"", "latencies are always recorded in HdrHistograms"},
	"reportlatencyforeacherror":              {"false", "errors are counted by class, their latencies are recorded together"},
	"latencytrackederrors":                   {"", "errors are counted by class, their latencies are recorded together"},
	"core_workload_insertion_retry_limit":    {"", "a load phase retries failed inserts by its own rule"},
	"core_workload_insertion_retry_interval": {"", "a load phase retries failed inserts by its own rule"},
}

func knownProperties() []string {
	names := slices.Concat(workloadProperties, clientProperties)
	for name := range ignoredProperties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// IsClientProperty reports whether a property concerns how a workload is driven and displayed, not
// the workload itself.
func IsClientProperty(name string) bool { return slices.Contains(clientProperties, name) }

// UnusedReason explains why a property has no effect, "" if it has one. database lists the
// properties of the database's clients; "*" accepts any.
func UnusedReason(name, value string, database []string) string {
	if slices.Contains(workloadProperties, name) || IsClientProperty(name) || slices.Contains(database, name) {
		return ""
	}
	if x, ok := ignoredProperties[name]; ok {
		if strings.TrimSpace(value) == x.same {
			return ""
		}
		return x.why
	}
	near := suggestProperty(name, append(knownProperties(), database...))
	switch {
	case near != "":
		return fmt.Sprintf("the name is unknown: did you mean %s?", near)
	case slices.Contains(database, "*"):
		return ""
	case strings.Contains(name, "."):
		return "neither YCSB nor the database's client has a property of this name"
	}
	return "the name is unknown"
}

func workloadWarnings(w Workload) []string {
	if total := w.Mix.Total(); total > 0 && math.Abs(total-1) > 1e-6 {
		return []string{fmt.Sprintf("the proportions sum up to %.4g: they are taken as weights "+
			"(readproportion is 0.95 and updateproportion 0.05 unless set)", total)}
	}
	return nil
}

const minStem = 4

// suggestProperty returns suggestions for an unknown property, "" for none: the nearest spelling,
// or the names that begin with it, such as operationcount for operations.
func suggestProperty(name string, known []string) string {
	if near := suggest.Nearest(name, known); near != "" {
		return near
	}
	stem := strings.TrimSuffix(strings.ToLower(name), "s")
	if len(stem) < minStem {
		return ""
	}
	var begin []string
	for _, k := range known {
		if strings.HasPrefix(k, stem) {
			begin = append(begin, k)
		}
	}
	slices.Sort(begin)
	return strings.Join(begin, ", ")
}
