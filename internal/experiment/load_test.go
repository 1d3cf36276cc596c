package experiment

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/load/ycsb"
)

var update = flag.Bool("update", false, "rewrite the expected messages of the scenarios in testdata")

// TestMistakes runs the scenarios of testdata: an archive with an experiment.yaml, the files that it names, overrides
// (a line of the comment "set: PATH=VALUE" or "fast"), and the expected messages. go test -update writes the messages.
func TestMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			want := -1
			for i, f := range archive.Files {
				if f.Name == "want" {
					want = i
				} else if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var sets []string
			fast := false
			for line := range strings.Lines(string(archive.Comment)) {
				if set, ok := strings.CutPrefix(strings.TrimSpace(line), "set: "); ok {
					sets = append(sets, set)
				}
				fast = fast || strings.TrimSpace(line) == "fast"
			}
			_, err = Load(filepath.Join(dir, "experiment.yaml"), sets, fast)
			var ps strict.Problems
			if !errors.As(err, &ps) {
				t.Fatalf("error %v, want problems", err)
			}
			for _, p := range ps {
				if p.Pos.Source == nil {
					t.Errorf("%q has no position", p.Message)
				}
			}
			got := strings.ReplaceAll(err.Error(), dir+"/", "") + "\n"
			if *update {
				archive.Files[want].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(archive.Files[want].Data), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Every experiment in the repository is valid, and so is its short form.
func TestReadyExperiments(t *testing.T) {
	n := 0
	err := filepath.WalkDir("../../experiments", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		n++
		if _, err := Load(path, nil, false); err != nil {
			t.Error(err)
		}
		e, err := Load(path, nil, true)
		if err != nil {
			t.Error(err)
			return nil
		}
		if d, known := e.Estimate(); !known || d > 3*time.Minute || len(e.Fast) == 0 && filepath.Base(filepath.Dir(path)) != "smoke" {
			t.Errorf("%s: a smoke run of %v (known: %v), want one of 3 minutes at most", path, d, known)
		}
		return nil
	})
	if err != nil || n < 5 {
		t.Errorf("%d experiments: %v", n, err)
	}
}

const small = `
name: small
topology: mesh:4
database: redis
workload: {name: a, properties: {fieldlength: 50}}
`

func parse(t *testing.T, text string, sets ...string) Experiment {
	t.Helper()
	e, err := Parse("small.yaml", []byte(text), sets, false)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestDefaults(t *testing.T) {
	e := parse(t, small)
	got := []any{e.Scale, e.SetupScale, e.Engine, e.Workload.Threads, e.Workload.Arrival, e.Stop.Time, e.Repetitions, e.Seed,
		e.Fidelity.BandwidthError, e.ClientNode(), e.DataNodes()}
	want := []any{1.0, 0.0, "auto", 16, "closed", defaultTime, 1, uint64(1), unit.Fraction(0.05), "client", []string{"n1", "n2", "n3", "n4"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w, err := e.YCSBWorkload(e.Pools()[0])
	if err != nil {
		t.Fatal(err)
	}
	if w.RecordCount != 1000 || w.ExpectedOperations != 1000 || w.FieldLength.Max != 50 || w.Mix.Update != 0.5 {
		t.Errorf("the workload is %+v", w)
	}
	cloud, err := e.Cloud()
	if err != nil || len(cloud.Nodes) != 5 || len(cloud.Links) != 6+4 {
		t.Errorf("the cloud has %d nodes and %d links, %v", len(cloud.Nodes), len(cloud.Links), err)
	}
}

func TestSetOverridesFast(t *testing.T) {
	text := small + "stop: {time: 60s}\nfast: {stop.time: 3s, repetitions: 2}\n"
	e, err := Parse("small.yaml", []byte(text), []string{"stop.time=1s", "database.count=3"}, true)
	if err != nil {
		t.Fatal(err)
	}
	if e.Stop.Time != unit.Duration(time.Second) || e.Repetitions != 2 || len(e.DataNodes()) != 3 {
		t.Errorf("stop.time %v, repetitions %d, nodes %v", e.Stop.Time, e.Repetitions, e.DataNodes())
	}
}

func TestWorkloadFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "w.properties"), []byte("recordcount=77\nreadproportion=1\nupdateproportion=0\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(small, "name: a,", "file: w.properties,", 1)
	for _, tt := range []struct {
		set  []string
		want int64
	}{{nil, 77}, {[]string{"workload.records=5"}, 5}} {
		e, err := Parse(filepath.Join(dir, "small.yaml"), []byte(text), tt.set, false)
		if err != nil {
			t.Fatal(err)
		}
		if w, err := e.YCSBWorkload(e.Pools()[0]); err != nil || w.RecordCount != tt.want || e.Workload.Records != tt.want {
			t.Errorf("%v: %d records, %v", tt.set, w.RecordCount, err)
		}
		if got := e.Plan()[0].Parameters["workload"]; got != "w" {
			t.Errorf("the name of the workload is %v", got)
		}
	}
}

// Keys of an inserting workload are drawn for the operation count of the experiment or the file, also if time ends the
// trial. The hottest record is the one that YCSB draws most often for that count.
func TestExpectedOperations(t *testing.T) {
	dir := t.TempDir()
	mix := "requestdistribution=zipfian\nreadproportion=0.9\nupdateproportion=0\ninsertproportion=0.1\n"
	for name, text := range map[string]string{"counted": "operationcount=5000\n" + mix, "silent": mix, "endless": "operationcount=0\n" + mix} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		workload, stop string
		want, inserts  int64
	}{
		{"name: e", "time: 10s", 1000, 100},
		{"name: e", "operations: 7000", 7000, 700},
		{"name: e", "operations: 7000, time: 10s", 7000, 700},
		{"name: e, expected_operations: 30000", "time: 10s", 30000, 3000},
		{"name: e, expected_operations: 30000", "operations: 7000", 30000, 3000},
		{"name: e, records: 300", "time: 10s", 1000, 100},
		{"file: counted, records: 300", "time: 10s", 5000, 1000},
		{"file: silent, records: 300", "time: 10s", 300, 60},
		{"file: endless, records: 300", "time: 10s", 0, 0},
	} {
		text := "name: x\ntopology: mesh:4\ndatabase: redis\nworkload: {" + tt.workload + "}\nstop: {" + tt.stop +
			"}\nmatrix: {workload.threads: [1, 8]}\n"
		e, err := Parse(filepath.Join(dir, "x.yaml"), []byte(text), nil, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, cell := range e.Plan() {
			w, err := cell.Experiment.YCSBWorkload(cell.Experiment.Pools()[0])
			inserts, bounded := w.ExpectedInserts()
			if err != nil || w.ExpectedOperations != tt.want || inserts != tt.inserts || !bounded {
				t.Errorf("%s, %s: %d expected operations, %d inserts, %v; want %d, %d", tt.workload, tt.stop, w.ExpectedOperations, inserts, err,
					tt.want, tt.inserts)
			}
			scrambled := ycsb.NewScrambledZipf(w.RecordCount + tt.inserts + 1)
			rank := int64(0)
			for scrambled.Item(rank) >= w.RecordCount {
				rank++
			}
			if got, want := hottest(w), scrambled.Item(rank); got != want {
				t.Errorf("%s, %s: the hottest record is %d, YCSB's %d", tt.workload, tt.stop, got, want)
			}
		}
	}
}

// hottest returns the record that a workload selects most often while none of its inserts is acknowledged.
func hottest(w ycsb.Workload) (most int64) {
	g, drawn := ycsb.NewSource(w, 1).NewGenerator(), map[int64]int{}
	for n := range uint64(20_000) {
		if op := g.Next(n); op.Kind != ycsb.Insert {
			if drawn[op.Number]++; drawn[op.Number] > drawn[most] {
				most = op.Number
			}
		}
	}
	return most
}

// The JSON form of an experiment is an equivalent experiment file.
func TestJSONIsAnExperiment(t *testing.T) {
	e := parse(t, small+`
client: {site: n2, memory: 1GiB}
matrix: {workload.threads: [8, 2], scale: [0.5, 1]}
drift: {steps: [{at: 1s, scale: 0.5}]}
stop: {time: 10s, confidence: 5%}
`)
	first, err := e.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("again.json", first, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	second, err := again.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(first), string(second)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !json.Valid(first) || !strings.Contains(string(first), `"matrix":{"workload.threads":[8,2],"scale":[0.5,1]}`) {
		t.Errorf("the axes are out of order: %s", first)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(small)
	for _, path := range []string{"../../experiments/quickstart.yaml", "../../experiments/fhc/latency.yaml",
		"../../experiments/examples/drift.yaml", "../../experiments/examples/mobility.yaml"} {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 || strings.Contains(text, "00") { // large numbers make large topologies: slow, not wrong
			return
		}
		_, err := Parse("f.yaml", []byte(text), nil, true)
		var ps strict.Problems
		if err != nil && !errors.As(err, &ps) {
			t.Fatalf("error %v, want problems", err)
		}
		for _, p := range ps {
			if p.Message == "" || p.Pos.Source == nil {
				t.Errorf("problem %+v has no position", p)
			}
		}
	})
}
