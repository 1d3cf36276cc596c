package runner

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/base/progress"
	"skerry/internal/database/all"
	"skerry/internal/experiment"
	"skerry/internal/record"
)

const twoByTwo = `
name: x
topology: pair
database: redis
workload: a
repetitions: 2
matrix: {workload: [a, c], scale: [0.2, 1]}
`

func loadExperiment(t *testing.T, sets ...string) experiment.Experiment {
	t.Helper()
	e, err := experiment.Parse("x.yaml", []byte(twoByTwo), sets, false)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestPlanNumbersCellsEquallyInEveryRepetition(t *testing.T) {
	cells := map[int]map[string]string{}
	for _, p := range planTrials(loadExperiment(t)) {
		if was, ok := cells[p.Cell]; ok {
			if diff := cmp.Diff(was, encodeParameters(p.Parameters)); diff != "" {
				t.Errorf("cell %d has other parameters in repetition %d:\n%s", p.Cell, p.Repetition, diff)
			}
		}
		cells[p.Cell] = encodeParameters(p.Parameters)
	}
	if len(cells) != 4 {
		t.Errorf("%d cells, want 4", len(cells))
	}
}

// Trials on clusters that Skerry did not start never run at the same time: they are one task of an engine.
func TestClustersOfTheUserAreOneTask(t *testing.T) {
	for _, spread := range []string{"trial", "repetition", "cell"} {
		text := "name: x\ndatabase: {name: redis, cluster: [\"10.0.0.1:6379\"]}\nworkload: a\nrepetitions: 2\nmatrix: {workload: [a, c]}\n"
		e, err := experiment.Parse("x.yaml", []byte(text), []string{"spread=" + spread}, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range planTrials(e) {
			if p.Task != 1 {
				t.Errorf("spread %s: trial %d is of task %d, want 1", spread, p.ID, p.Task)
			}
		}
	}
}

// A shared cluster is prepared for the largest scale of its trials and for each workload once; a cluster of one trial
// for none.
func TestSharing(t *testing.T) {
	const clusters = "matrix={database: [redis, etcd], scale: [0.5, 2, 1], workload: [a, {name: e, timeout: 30s}]}"
	if got := clusterSharing(loadExperiment(t, clusters).Plan()); len(got) != 0 {
		t.Errorf("without reuse: %v", got)
	}
	e := loadExperiment(t, clusters, "reuse=true")
	got := clusterSharing(e.Plan())
	if len(got) != 2 {
		t.Errorf("%d clusters, want 2", len(got))
	}
	for _, c := range e.Plan() {
		s := got[c.Experiment.ClusterKey()]
		if s.FarthestScale != 2 {
			t.Errorf("the cluster of trial %d is prepared for scale %g, but one of its trials has 2", c.ID, s.FarthestScale)
		}
		var workloads []string
		for _, w := range s.Workloads {
			workloads = append(workloads, w.Experiment.Workload.Name)
		}
		slices.Sort(workloads)
		if diff := cmp.Diff([]string{"a", "e"}, workloads); diff != "" {
			t.Errorf("workloads of the cluster of trial %d (-want +got):\n%s", c.ID, diff)
		}
	}
}

func TestCheckPlan(t *testing.T) {
	recorded := planTrials(loadExperiment(t))
	for _, set := range []string{"seed=1", "matrix.workload.records=[10, 1000000]"} {
		if err := checkPlan(throughJSON(t, planTrials(loadExperiment(t, set))), planTrials(loadExperiment(t, set))); err != nil {
			t.Errorf("%s: the same plan: %v", set, err)
		}
	}
	for _, change := range []string{"seed=2", "repetitions=3", "matrix.scale=[0.2, 0.9]"} {
		if err := checkPlan(recorded, planTrials(loadExperiment(t, change))); err == nil {
			t.Errorf("%s: accepted as the same plan", change)
		}
	}
}

func TestCheckFiles(t *testing.T) {
	recorded := map[string]string{"a.csv": "1", "b.csv": "2"}
	for name, tt := range map[string]struct {
		now  map[string]string
		want string
	}{
		"the same": {map[string]string{"a.csv": "1", "b.csv": "2"}, ""},
		"one changed": {
			map[string]string{"a.csv": "1", "b.csv": "3"},
			"file b.csv of the experiment has changed since the run was started",
		},
		"an older run":          {nil, ""},
		"a file no longer used": {map[string]string{"b.csv": "2"}, "file a.csv of the experiment has changed since the run was started"},
	} {
		was := recorded
		if name == "an older run" {
			was = nil
		}
		err := checkFiles(was, tt.now)
		if got := fmt.Sprint(err); (err == nil) != (tt.want == "") || err != nil && got != tt.want {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// throughJSON is a plan as a later process reads it from run.json.
func throughJSON(t *testing.T, plan []record.Planned) (out []record.Planned) {
	t.Helper()
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFormatTimeLeft(t *testing.T) {
	for d, want := range map[time.Duration]string{
		42 * time.Second: "42 s", 10 * time.Minute: "10 min", 3 * time.Hour: "3.0 h",
	} {
		if got := formatTimeLeft(d); got != want {
			t.Errorf("roughly(%v) = %q, want %q", d, got, want)
		}
	}
}

// Settings of a workload file without effect are in run.json from the start, and stay there when a trial adds missing
// features of the machine.
func TestNotesAreRecorded(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "w"), []byte("recordcount=5\nthreadcount=3\nflavour=2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "name: x\ntopology: mesh:3\ndatabase: redis\nworkload: {file: w}\n"
	var c Config
	if err := c.SetSource(record.File{Path: filepath.Join(dir, "x.yaml"), Text: text}, all.Databases()); err != nil {
		t.Fatal(err)
	}
	started, err := c.newRecord()
	if err != nil {
		t.Fatal(err)
	}
	c.Progress = progress.New(io.Discard, nil)
	r := &run{Config: c}
	if r.writer, err = record.Create(dir, started); err != nil {
		t.Fatal(err)
	}
	for range 2 { // trials
		if err := r.recordLab("userspace", "", []string{"no real-time priority"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.writer.Finish(); err != nil {
		t.Fatal(err)
	}
	d, err := record.Open(r.writer.Dir())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"w:3: flavour=2 has no effect: the name is unknown", "no real-time priority"}
	if diff := cmp.Diff(want, d.Run.Warnings); diff != "" || !slices.Contains(c.Experiment.UnusedSettings(c.Databases), want[0]) {
		t.Error(diff)
	}
}
