package experiment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/base/strict"
	"skerry/internal/database"
)

// describer describes every file except bad ones.
type describer struct {
	fake
	asked *[]string
}

func (d describer) Describe(path string, text []byte) (database.Database, error) {
	*d.asked = append(*d.asked, path+": "+string(text))
	if filepath.Base(path) == "bad.yaml" {
		return nil, strict.Problems{{Message: "the key nmae is unknown"}}
	}
	return d.fake, nil
}

func TestDescribedDatabase(t *testing.T) {
	dir := t.TempDir()
	described := func(sets ...string) Experiment {
		t.Helper()
		e, err := Parse(filepath.Join(dir, "e.yaml"), []byte(small), sets, false)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if err := os.Mkdir(filepath.Join(dir, "own"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"own/mydb.yaml", "bad.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("the text"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var asked []string
	all := databases()
	all[database.Exec] = describer{fake{can: database.Capabilities{MinNodes: 3}}, &asked}
	for _, test := range []struct {
		sets []string
		want string
	}{
		{[]string{"database={exec: own/mydb.yaml}"}, ""},
		{[]string{"database={exec: own/mydb.yaml, count: 2}"}, "exec:own/mydb.yaml needs at least 3 nodes"},
		{[]string{"database={exec: bad.yaml}"}, "the key nmae is unknown"},
		{[]string{"database={exec: none.yaml}"}, "none.yaml: no such file"},
	} {
		err := CheckCapabilities(described(test.sets...), all)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: error %v, want %q", test.sets, err, test.want)
		}
	}
	e := described("database={exec: own/mydb.yaml, version: '5.0'}")
	if label, key := e.Database.Label(), e.Database.Key(); label != "exec:own/mydb.yaml" || key != "exec:own/mydb.yaml@5.0" {
		t.Errorf("called %s, installed as %s", label, key)
	}
	if want := filepath.Join(dir, "own/mydb.yaml") + ": the text"; asked[0] != want {
		t.Errorf("got path %q, want %q: the file is relative to the experiment", asked[0], want)
	}
	if name := e.Plan()[0].Parameters["database"]; name != "exec:mydb@5.0" {
		t.Errorf("name in results is %v, want exec:mydb@5.0", name)
	}
	varied := described("matrix={database: [redis, {exec: own/mydb.yaml}, {exec: bad.yaml, count: 3}]}")
	for i, want := range []string{"redis", "exec:mydb", "exec:bad"} {
		for _, c := range varied.Plan() {
			if got := c.Parameters["database"]; c.ID == i+1 && got != want {
				t.Errorf("in a matrix: trial %d has database %v, want %s", c.ID, got, want)
			}
		}
	}
	// The description matches the digest, even if the file changes later.
	if _, err := e.ResolveDatabase(all); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "own/mydb.yaml"), []byte("another"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := e.ResolveDatabase(all); err != nil {
		t.Fatal(err)
	}
	if last := asked[len(asked)-1]; !strings.HasSuffix(last, ": the text") || e.FileDigests()["own/mydb.yaml"] == "" {
		t.Errorf("described %q, digests %v", last, e.FileDigests())
	}
}
