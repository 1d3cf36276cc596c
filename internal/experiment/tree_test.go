package experiment

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/database"
	"skerry/internal/load/mdtest"
)

const treeful = `
name: tree
topology: mesh:4
database: redis
workload: {name: namespace, records: 500, properties: {shared: 0.5, files: 10, mkdirproportion: 0}}
`

func TestTreeWorkload(t *testing.T) {
	e := parse(t, treeful, "assert=[list.p95 < 1s, rename.count > 0]")
	w, err := e.Workload.Tree()
	if err != nil {
		t.Fatal(err)
	}
	if w.Records != 500 || w.Shared != 0.5 || w.Files != 10 || w.Uses(mdtest.Mkdir) || w.Home != mdtest.Near {
		t.Errorf("the workload is %+v", w)
	}
	if y, err := e.YCSBWorkload(e.Pools()[0]); err != nil || y.RecordCount != 500 || y.InsertCount != 500 {
		t.Errorf("%d records to load, %v", y.InsertCount, err)
	}
	if w, err := parse(t, small).Workload.Tree(); w != nil || err != nil {
		t.Errorf("workload a on a tree: %+v, %v", w, err)
	}
	for name, test := range map[string]struct{ set, want string }{
		"a value": {"workload.properties.shared=2",
			"--set workload.properties.shared=2: workload.properties.shared: \"2\" is not a number between 0 and 1"},
		"a property":          {"workload.properties.fieldlength=2", "unknown for workload namespace"},
		"of another":          {"assert=[read.p95 < 1s]", "the workload has no operation read"},
		"no such metric here": {"assert=[mkdir.p95 < 1s]", "the workload has no operation mkdir"},
		"probed":              {"workload.probes={every: 5s}", "the same names"},
		"too few to share":    {"workload.records=1", "at least 2 records"},
	} {
		_, err := Parse("tree.yaml", []byte(treeful), []string{test.set}, false)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestTreeWorkloadNeedsTreeDatabase(t *testing.T) {
	e := parse(t, treeful)
	all := databases()
	if err := CheckCapabilities(e, all); err == nil || !strings.Contains(err.Error(),
		"workload namespace needs a directory tree, redis is none") {
		t.Errorf("on records: %v", err)
	}
	all["redis"] = fake{can: database.Capabilities{Tree: true}}
	if d := cmp.Diff(nil, CheckCapabilities(e, all)); d != "" {
		t.Error(d)
	}
}
