package experiment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/database"
)

// configurable is a database whose clients have properties.
type configurable struct {
	fake
	properties []string
}

func (c configurable) Properties() []string { return c.properties }

func configurables() map[string]database.Database {
	f := fake{can: database.Capabilities{Scan: true, MinNodes: 3}}
	return map[string]database.Database{
		"redis":   configurable{f, []string{"redis.hosts", "redis.timeout"}},
		"mongodb": configurable{f, []string{"mongodb.url"}},
		"own":     configurable{f, []string{"*"}},
	}
}

// withFile loads an experiment whose workload is a file of the corpus.
func withFile(t *testing.T, file, workload, rest string) Experiment {
	t.Helper()
	dir, err := filepath.Abs("../../test/corpus/workloads")
	if err != nil {
		t.Fatal(err)
	}
	text := "name: x\ntopology: mesh:3\ndatabase: redis\nworkload: {file: " + file + workload + "}\n" + rest
	e, err := Parse(filepath.Join(dir, "x.yaml"), []byte(text), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckCapabilities(e, configurables()); err != nil {
		t.Fatal(err)
	}
	return e
}

// The settings of a file apply unless the experiment overrides them. Settings without effect are noted with file, line
// and reason.
func TestWorkloadCorpus(t *testing.T) {
	const (
		histograms = "a trial always records its histograms in its directory"
		always     = "latencies are always recorded in HdrHistograms"
	)
	type outcome struct {
		Records    int64
		Threads    int
		Target     float64
		Operations int64
		Time       string
	}
	paced := []string{
		"paced.properties:14: hdrhistogram.percentiles=50,95,99,99.9 has no effect: a trial records whole histograms",
		"paced.properties:15: hdrhistogram.fileoutput=true has no effect: " + histograms,
		"paced.properties:16: hdrhistogram.output.path=/tmp/ycsb- has no effect: " + histograms,
		"paced.properties:17: status.interval=1 has no effect: a run shows its own progress",
	}
	for _, c := range []struct {
		file, workload, rest string
		want                 outcome
		notes                []string
	}{
		{"paced.properties", "", "", outcome{2000, 8, 100, 30000, "5m"}, paced},
		{"paced.properties", ", records: 50, threads: 2, target: 7", "stop: {time: 10s}", outcome{50, 2, 7, 0, "10s"}, append([]string{
			"paced.properties:2: recordcount=2000 has no effect: workload.records is 50",
			"paced.properties:3: operationcount=30000 does not end a trial: stop ends it, 10s",
			"paced.properties:10: threadcount=8 has no effect: workload.threads is 2",
			"paced.properties:11: target=100 has no effect: workload.target is 7",
			"paced.properties:12: maxexecutiontime=300 does not end a trial: stop ends it, 10s",
		}, paced...)},
		{"paced.properties", ", records: 2000, threads: 8, target: 100.0, properties: {readproportion: 1, updateproportion: 0}",
			"stop: {operations: 5, time: 10s}",
			outcome{2000, 8, 100, 5, "10s"}, append([]string{
				"paced.properties:3: operationcount=30000 does not end a trial: stop ends it, 10s, or 5 operations",
				"paced.properties:5: readproportion=0.9 has no effect: workload.properties.readproportion is 1",
				"paced.properties:6: updateproportion=0.1 has no effect: workload.properties.updateproportion is 0",
				"paced.properties:12: maxexecutiontime=300 does not end a trial: stop ends it, 10s, or 5 operations",
			}, paced...)},
		{"template.properties", "", "", outcome{1000000, 16, 0, 3000000, "0s"}, []string{
			"template.properties:23: measurementtype=histogram has no effect: " + always,
			"template.properties:24: histogram.buckets=1000 has no effect: " + always,
			"template.properties:25: timeseries.granularity=1000 has no effect: " + always,
		}},
		{"loader-2-of-4.properties", "", "", outcome{4000, 16, 0, 0, "30s"}, []string{
			"loader-2-of-4.properties:3: insertstart=1000 bounds the records that requests choose; all 4000 records are loaded",
			"loader-2-of-4.properties:4: insertcount=1000 bounds the records that requests choose; all 4000 records are loaded",
		}},
		{"misspelt.properties", ", properties: {updateproportion: 0.05}", "", outcome{1000, 32, 0, 0, "30s"}, []string{
			"misspelt.properties:2: readpropotion=1.0 has no effect: the name is unknown: did you mean readproportion?",
			"misspelt.properties:3: updateproportion=0 has no effect: workload.properties.updateproportion is 0.05",
			"misspelt.properties:4: requestdistributon=latest has no effect: the name is unknown: did you mean requestdistribution?",
			"misspelt.properties:5: threadcount=4 has no effect: line 7 sets it again",
			"misspelt.properties:6: mongodb.url=mongodb://localhost:27017/ycsb?w=1 has no effect: " +
				"neither YCSB nor the database's client has a property of this name",
		}},
	} {
		e := withFile(t, c.file, c.workload, c.rest)
		got := outcome{e.Workload.Records, e.Workload.Threads, e.Workload.Target, e.Stop.Operations, e.Stop.Time.String()}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s%s: %s", c.file, c.workload, d)
		}
		if d := cmp.Diff(c.notes, e.UnusedSettings(configurables())); d != "" {
			t.Errorf("%s%s: %s", c.file, c.workload, d)
		}
	}
}

// The error about go-ycsb's class names the line of the file.
func TestForeignWorkloadFile(t *testing.T) {
	text := "name: x\ntopology: mesh:3\ndatabase: redis\nworkload: {file: goycsb-redis.properties}\n"
	_, err := Parse("../../test/corpus/workloads/x.yaml", []byte(text), nil, false)
	if err == nil || !strings.Contains(err.Error(), "goycsb-redis.properties:4:1: property workload: unsupported class core") {
		t.Errorf("error %v", err)
	}
}

// Keys are drawn for the operation count of a file, also if time ends a trial.
func TestFileOperationCount(t *testing.T) {
	for _, c := range []struct {
		stop string
		want int64
	}{{"", 30000}, {"stop: {time: 10s}", 30000}, {"stop: {operations: 70}", 70}} {
		e := withFile(t, "paced.properties", "", c.stop)
		if w, err := e.YCSBWorkload(e.Pools()[0]); err != nil || w.OperationCount != c.want {
			t.Errorf("%q: %d operations, %v; want %d", c.stop, w.OperationCount, err, c.want)
		}
	}
}

// Each workload has the threads and target of its file; the experiment ends the trial.
func TestFilesOfParallelWorkloads(t *testing.T) {
	e, err := Parse("../../test/corpus/workloads/x.yaml", []byte(`
name: x
topology: mesh:3
database: redis
workloads:
  - {name: one, workload: {file: paced.properties}}
  - {name: two, workload: {file: paced.properties, threads: 3}}
`), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	one, two := e.Workloads[0].Workload, e.Workloads[1].Workload
	if one.Threads != 8 || two.Threads != 3 || one.Target != 100 || e.Stop.Operations != 0 || e.Stop.Time != defaultTime {
		t.Errorf("%+v\n%+v\n%v", one, two, e.Stop)
	}
	notes := strings.Join(e.UnusedSettings(configurables()), "\n")
	for _, want := range []string{
		"paced.properties:3: operationcount=30000 does not end a trial: stop ends it, 30s",
		"paced.properties:10: threadcount=8 has no effect: workloads[1].workload.threads is 3",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("note %q is missing in\n%s", want, notes)
		}
	}
}

// A misspelt property of the database's client is rejected at its position. One of another database is noted, because a
// matrix may contain several databases.
func TestClientProperties(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "w"), []byte("recordcount=5\nredis.timeout=7\nredis.timout=7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(text string) (Experiment, error) {
		e, err := Parse(filepath.Join(dir, "x.yaml"), []byte("name: x\ntopology: mesh:3\n"+text), nil, false)
		if err != nil {
			t.Fatal(err)
		}
		return e, CheckCapabilities(e, configurables())
	}
	for _, c := range []struct{ text, want string }{
		{"database: redis\nworkload: {file: w}\n", `w:3:1: clients of redis have no property redis.timout; did you mean "redis.timeout"?`},
		{"database: redis\nworkload: {name: a, properties: {redis.timout: 7}}\n", "x.yaml:4:"},
	} {
		if _, err := load(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", c.text, err, c.want)
		}
	}
	e, err := load("database: own\nworkload: {file: w}\n")
	if notes := e.UnusedSettings(configurables()); err != nil || len(notes) > 0 {
		t.Errorf("a program accepts any property: %v, %q", err, notes)
	}
	e, err = load("database: redis\nmatrix: {database: [redis, mongodb]}\n" +
		"workload: {name: a, properties: {redis.timeout: 7, mongodb.url: x}}\n")
	want := []string{
		"workload.properties.mongodb.url=x has no effect with redis: neither YCSB nor the database's client has a property of this name",
		"workload.properties.redis.timeout=7 has no effect with mongodb: neither YCSB nor the database's client has a property of this name",
	}
	if d := cmp.Diff(want, e.UnusedSettings(configurables())); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	over := e.OverriddenSettings(map[string]string{"redis.timeout": "10", "redis.hosts": "a"})
	if d := cmp.Diff([]string{"workload.properties.redis.timeout=7 has no effect: the trial's cluster has redis.timeout=10"}, over); d != "" {
		t.Error(d)
	}
	e = withFile(t, "misspelt.properties", ", properties: {updateproportion: 0.05}", "")
	over = e.OverriddenSettings(map[string]string{"mongodb.url": "mongodb://n1"})
	if len(over) != 1 || !strings.HasPrefix(over[0], "misspelt.properties:6: mongodb.url=") {
		t.Errorf("%q", over)
	}
}

// Values that YCSB would reject are rejected at their line, also if the experiment overrides them.
func TestInvalidFileSettings(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"recordcount=many\n":                          "w:1:1: property recordcount:",
		"recordcount=1\nthreadcount=0\n":              "w:2:1: property threadcount:",
		"recordcount=1\n\ntarget=fast\n":              "w:3:1: property target:",
		"recordcount=1\noperationcount=-1\n":          "w:2:1: property operationcount:",
		"recordcount=1\nhdrhistogram.percentiles=x\n": "w:2:1: property hdrhistogram.percentiles:",
	} {
		if err := os.WriteFile(filepath.Join(dir, "w"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Parse(filepath.Join(dir, "x.yaml"), []byte("name: x\ntopology: mesh:3\ndatabase: redis\n"+
			"workload: {file: w, records: 5, threads: 2, target: 3}\nstop: {time: 1s}\n"), nil, false)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}
