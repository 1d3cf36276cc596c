package experiment

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/database"
	"skerry/internal/strict"
)

// describer describes every file but those that are bad.
type describer struct {
	fake
	asked *[]string
}

func (d describer) Describe(path string) (database.Database, error) {
	*d.asked = append(*d.asked, path)
	switch filepath.Base(path) {
	case "bad.yaml":
		return nil, strict.Problems{{Message: "the key nmae is unknown"}}
	case "none.yaml":
		return nil, errors.New("no such file")
	}
	return d.fake, nil
}

func TestDescribedDatabase(t *testing.T) {
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
		{[]string{"database={exec: none.yaml}"}, "database.exec: no such file"},
	} {
		err := Check(parse(t, small, test.sets...), all)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: error %v, want %q", test.sets, err, test.want)
		}
	}
	e := parse(t, small, "database={exec: own/mydb.yaml, version: '5.0'}")
	if label, key := e.Database.Label(), e.Database.Key(); label != "exec:own/mydb.yaml" || key != "exec:own/mydb.yaml@5.0" {
		t.Errorf("called %s, installed as %s", label, key)
	}
	if asked[0] != "own/mydb.yaml" {
		t.Errorf("asked for %q; the file is relative to the experiment", asked)
	}
}
