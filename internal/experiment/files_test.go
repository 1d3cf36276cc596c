package experiment

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/load/ycsb"
)

// Every file that a trial names is recorded by its content at the time when the experiment was loaded.
func TestFileDigests(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("latency.csv", ",a,b\na,0,10\nb,10,0\n")
	write("one.properties", "recordcount=77\nreadproportion=1\nupdateproportion=0\n")
	write("two.properties", "recordcount=77\nreadproportion=0\nupdateproportion=1\n")
	write("x.yaml", "name: x\ntopology: {sites: [a, b], matrix: {latency: latency.csv}}\nclient: a\ndatabase: redis\n"+
		"workload: {file: one.properties}\nmatrix: {workload.file: [one.properties, two.properties]}\n")
	load := func() Experiment {
		t.Helper()
		e, err := Load(filepath.Join(dir, "x.yaml"), nil, false)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := load()
	before := e.FileDigests()
	if diff := cmp.Diff([]string{"latency.csv", "one.properties", "two.properties"}, slices.Sorted(maps.Keys(before))); diff != "" {
		t.Fatal(diff)
	}
	write("two.properties", "recordcount=77\nreadproportion=0.5\nupdateproportion=0.5\n")
	for _, c := range e.Plan() {
		w, err := c.Experiment.YCSBWorkload(c.Experiment.Pools()[0])
		if err != nil || c.Experiment.Workload.File == "two.properties" && w.Uses(ycsb.Read) {
			t.Errorf("%s is read again: %+v, %v", c.Experiment.Workload.File, w.Mix, err)
		}
	}
	after := load().FileDigests()
	for name := range before {
		if changed := before[name] != after[name]; changed != (name == "two.properties") {
			t.Errorf("%s changed: %t", name, changed)
		}
	}
}
