package ycsb

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// known are the properties of YCSB's core, client and measurements that either mean
// something here or can be passed over without changing what is measured.
func known() []string {
	return []string{
		"table", "recordcount", "operationcount", "insertstart", "insertcount", "insertorder", "zeropadding",
		"fieldcount", "fieldlength", "minfieldlength", "fieldlengthdistribution", "fieldlengthhistogram", "fieldnameprefix",
		"readallfields", "readallfieldsbyname", "writeallfields", "dataintegrity",
		"readproportion", "updateproportion", "insertproportion", "scanproportion", "readmodifywriteproportion", "deleteproportion",
		"requestdistribution", "hotspotdatafraction", "hotspotopnfraction", "exponential.percentile", "exponential.frac",
		"minscanlength", "maxscanlength", "scanlengthdistribution",
		"core_workload_insertion_retry_limit", "core_workload_insertion_retry_interval",
		"workload", "db", "dotransactions", "threadcount", "target", "maxexecutiontime", "label",
		"status", "status.interval", "exporter", "exportfile", "spin.sleep",
		"measurementtype", "measurement.interval", "measurement.trackjvm", "measurement.histogram.verbose",
		"hdrhistogram.percentiles", "hdrhistogram.fileoutput", "hdrhistogram.output.path",
		"histogram.buckets", "timeseries.granularity", "reportlatencyforeacherror", "latencytrackederrors",
	}
}

// warnings tells of names that nothing knows. A name with a dot belongs to a database's
// client ("redis.host"), unless it is nearly a known one.
func (r *reader) warnings(w Workload) []string {
	names := known()
	var out []string
	for name := range r.p {
		if slices.Contains(names, name) {
			continue
		}
		near := suggest(name, names)
		switch {
		case near != "":
			out = append(out, fmt.Sprintf("property %s is not known: did you mean %s?", name, near))
		case !strings.Contains(name, "."):
			out = append(out, fmt.Sprintf("property %s is not known", name))
		}
	}
	slices.Sort(out)
	if total := w.Mix.Total(); total > 0 && math.Abs(total-1) > 1e-6 {
		out = append(out, fmt.Sprintf("the proportions sum up to %.4g: they are taken as weights (readproportion is 0.95 and updateproportion 0.05 unless set)", total))
	}
	return out
}
