package ycsb

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDefaults(t *testing.T) {
	got := parse(t, Properties{})
	want := Workload{
		Table: "usertable", RecordCount: 1000, ExpectedOperations: 1000, InsertCount: 1000,
		Fields: 10, FieldPrefix: "field", FieldLength: Length{Distribution: "constant", Min: 100, Max: 100},
		ReadAllFields: true, Mix: Mix{Read: 0.95, Update: 0.05}, Requests: Request{Distribution: "uniform"},
		ScanLength: Length{Distribution: "uniform", Min: 1, Max: 1000}, ZeroPadding: 1,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestBuiltins(t *testing.T) {
	for _, name := range []string{"a", "B", "workloadc", "WORKLOADD", "e", "f"} {
		w := builtin(t, name, nil)
		if w.RecordCount != 1000 || w.OperationCount != 1000 || w.Mix.Total() != 1 {
			t.Errorf("workload %s: %+v", name, w)
		}
		want := Zipfian
		if strings.HasSuffix(strings.ToLower(name), "d") {
			want = Latest
		}
		if w.Requests.Distribution != want {
			t.Errorf("workload %s chooses keys by %s, want %s", name, w.Requests.Distribution, want)
		}
	}
	if w := builtin(t, "e", nil); w.ScanLength.Max != 100 {
		t.Errorf("workload E scans up to %d records, want 100", w.ScanLength.Max)
	}
	for _, name := range []string{"", "g", "workload", "../workloads/workloada", "aa"} {
		if _, ok := Builtin(name); ok {
			t.Errorf("unknown workload %q was accepted", name)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		p    Properties
		want string
	}{
		{Properties{"readproportion": "1.5"}, "property readproportion: 1.5 is not between 0 and 1"},
		{Properties{"updateproportion": "-0.1"}, "property updateproportion: -0.1 is not between 0 and 1"},
		{Properties{"scanproportion": "NaN"}, `property scanproportion: "NaN" is not a number`},
		{Properties{"insertproportion": "half"}, `property insertproportion: "half" is not a number`},
		{Properties{"readproportion": "0", "updateproportion": "0"}, "all proportions are 0"},
		{Properties{"requestdistribution": "zipfain"}, `property requestdistribution: unknown "zipfain": did you mean zipfian?`},
		{Properties{"requestdistribution": "normal"}, `one of uniform, zipfian, zipfian-true, latest, hotspot, exponential, sequential`},
		{Properties{"recordcount": "0"}, "property recordcount: 0 is not between 1"},
		{Properties{"recordcount": "-5"}, "property recordcount: -5"},
		{Properties{"recordcount": "1e6"}, `property recordcount: "1e6" is not a whole number`},
		{Properties{"recordcount": "99999999999999999999"}, "property recordcount: 99999999999999999999 is not between"},
		{Properties{"insertstart": "990", "insertcount": "20"}, "property insertcount: insertstart 990 + insertcount 20"},
		{Properties{"insertstart": "1000"}, "property insertstart: 1000 leaves no records to load"},
		{Properties{"fieldcount": "0"}, "property fieldcount"},
		{Properties{"fieldlengthdistribution": "uniform", "minfieldlength": "200"}, "property minfieldlength: 200 is above fieldlength 100"},
		{Properties{"fieldlengthdistribution": "gauss"}, "property fieldlengthdistribution"},
		{Properties{"fieldlengthdistribution": "histogram", "fieldlengthhistogram": "/nowhere/hist.txt"},
			"property fieldlengthhistogram: open /nowhere/hist.txt"},
		{Properties{"dataintegrity": "true", "fieldlengthdistribution": "uniform"},
			"property dataintegrity: needs fieldlengthdistribution=constant"},
		{Properties{"dataintegrity": "yes"}, `property dataintegrity: "yes" is neither true nor false`},
		{Properties{"minscanlength": "50", "maxscanlength": "10"}, "property minscanlength: 50 is above maxscanlength 10"},
		{Properties{"scanlengthdistribution": "constant"}, "property scanlengthdistribution"},
		{Properties{"requestdistribution": "hotspot", "hotspotdatafraction": "2"}, "property hotspotdatafraction: 2 is not between 0 and 1"},
		{Properties{"requestdistribution": "exponential", "exponential.percentile": "100"}, "property exponential.percentile"},
		{Properties{"insertorder": "reverse"}, "property insertorder"},
		{Properties{"workload": "site.ycsb.workloads.TimeSeriesWorkload"},
			"property workload: unsupported class site.ycsb.workloads.TimeSeriesWorkload"},
	} {
		_, _, err := Parse(Properties{"recordcount": "1000"}.Merge(c.p))
		if !errors.Is(err, ErrWorkload) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v:\n%v, want\n%s", c.p, err, c.want)
		}
	}
	if _, _, err := Parse(Properties{}); err == nil || !strings.Contains(err.Error(), "property recordcount: missing") {
		t.Errorf("without recordcount: %v", err)
	}
}

func TestAllErrorsAtOnce(t *testing.T) {
	_, _, err := Parse(Properties{"recordcount": "10", "readproportion": "2", "fieldcount": "x", "requestdistribution": "y"})
	for _, name := range []string{"readproportion", "fieldcount", "requestdistribution"} {
		if err == nil || !strings.Contains(err.Error(), "property "+name) {
			t.Errorf("%s is not reported: %v", name, err)
		}
	}
}

func TestUnusedProperties(t *testing.T) {
	client := []string{"redis.host", "hosts"}
	for _, c := range []struct{ name, value, want string }{
		{"requestdistributon", "zipfian", "the name is unknown: did you mean requestdistribution?"},
		{"hdrhistogram.percentile", "50", "the name is unknown: did you mean hdrhistogram.percentiles?"},
		{"redis.hots", "a", "the name is unknown: did you mean redis.host?"},
		{"flavour", "1", "the name is unknown"},
		{"mongodb.url", "x", "neither YCSB nor the database's client has a property of this name"},
		{"measurementtype", "timeseries", "latencies are always recorded in HdrHistograms"},
		{"measurementtype", " hdrhistogram", ""},
		{"exporter", "site.ycsb.measurements.exporter.JSONMeasurementsExporter", "figures are written as text or JSON"},
		{"redis.host", "10.0.0.1", ""}, {"hosts", "10.0.0.1", ""}, {"threadcount", "4", ""}, {"readproportion", "1", ""},
	} {
		if got := UnusedReason(c.name, c.value, client); got != c.want {
			t.Errorf("%s=%s: %q, want %q", c.name, c.value, got, c.want)
		}
	}
	if got := UnusedReason("my.own", "1", []string{"*"}); got != "" {
		t.Errorf("a property of the program itself: %q", got)
	}
	for _, name := range knownProperties() {
		if strings.HasPrefix(UnusedReason(name, "x", nil), "the name is unknown") {
			t.Errorf("%s is unknown", name)
		}
	}
}

func TestEntries(t *testing.T) {
	got, err := ReadEntries(strings.NewReader("# comment\na=1\n\nb = 2 \\\n  3\na:4\na 5\n"))
	want := []Entry{{"a", "1", 2, 6}, {"b", "2 3", 4, 0}, {"a", "4", 6, 7}, {"a", "5", 7, 0}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	if got[0].OverrideReason() != "line 6 sets it again" || got[3].OverrideReason() != "" {
		t.Errorf("%q, %q", got[0].OverrideReason(), got[3].OverrideReason())
	}
}

func TestProportionSumWarning(t *testing.T) {
	// A trap of YCSB's defaults: the share of reads stays 0.95.
	_, got, err := Parse(Properties{"recordcount": "10", "scanproportion": "1"})
	if err != nil || len(got) != 1 || !strings.Contains(got[0], "sum up to 2") {
		t.Errorf("warnings %q, %v", got, err)
	}
}

func TestSettings(t *testing.T) {
	got, err := ParseSettings(Properties{})
	want := Settings{Threads: 1, StatusInterval: 10 * time.Second, Percentiles: []float64{50, 95, 99}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("defaults: %v %s", err, d)
	}
	got, err = ParseSettings(Properties{
		"threadcount": "16", "target": "1000", "maxexecutiontime": "30", "measurement.interval": "both",
		"hdrhistogram.percentiles": "50, 99.9", "status": "true", "status.interval": "1", "label": "x ",
		"hdrhistogram.fileoutput": "true", "hdrhistogram.output.path": "/tmp/out-",
	})
	want = Settings{
		Threads: 16, Target: 1000, MaxExecutionTime: 30 * time.Second, Interval: IntervalBoth, Percentiles: []float64{50, 99.9},
		Status: true, StatusInterval: time.Second, Label: "x ", HDR: true, HDRPath: "/tmp/out-",
	}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	for name, value := range map[string]string{
		"threadcount": "0", "target": "-1", "maxexecutiontime": "soon", "measurement.interval": "each",
		"hdrhistogram.percentiles": "50,101", "status.interval": "0", "hdrhistogram.fileoutput": "1",
	} {
		if _, err := ParseSettings(Properties{name: value}); !errors.Is(err, ErrWorkload) || !strings.Contains(err.Error(), "property "+name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}

func TestSuggest(t *testing.T) {
	for name, want := range map[string]string{
		"operations": "operationcount", "records": "recordcount", "Threads": "threadcount", "thread": "threadcount",
		"fieldlenght": "fieldlength", "measurementtypes": "measurementtype", "inserts": "insertcount, insertorder, insertproportion, insertstart",
		"flavour": "", "op": "",
	} {
		if got := suggestProperty(name, knownProperties()); got != want {
			t.Errorf("%s: suggests %q, want %q", name, got, want)
		}
	}
}
