package results

import (
	"bytes"
	"os"
	"testing"

	"skerry/internal/database/all"
	"skerry/internal/experiment"
)

const (
	root  = "../../.."
	pages = root + "/docs/results"
)

func load(t *testing.T) Plan {
	t.Helper()
	p, err := Load(pages + "/plan.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Every experiment of the plan can be run, in full and in its short form.
func TestPlanCanBeRun(t *testing.T) {
	for _, page := range load(t).Pages {
		for _, s := range page.Steps {
			for _, quick := range []bool{false, true} {
				if v := experiment.Validate(root+"/"+s.Run, s.Set, quick, all.Databases()); !v.Valid {
					t.Errorf("%s, quick %v: %+v", s.Name, quick, v.Problems)
				}
			}
		}
	}
}

func TestSelect(t *testing.T) {
	p := load(t)
	for _, tt := range []struct {
		names []string
		want  int
	}{{nil, len(p.Pages)}, {[]string{"all"}, len(p.Pages)}, {[]string{"clouds"}, 1}, {[]string{"mds"}, 1}, {[]string{"routing", "fhc-resize"}, 2}} {
		if got, err := p.Select(tt.names); err != nil || len(got) != tt.want {
			t.Errorf("%v selects %d pages, %v, want %d", tt.names, len(got), err, tt.want)
		}
	}
	if _, err := p.Select([]string{"cloud"}); err == nil {
		t.Error("a name that means nothing selects something")
	}
}

// What stands on the pages is what follows from their data.
func TestPagesFollowFromData(t *testing.T) {
	files, err := Folder(pages).Files()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what its data says (%v): run make docs", path, err)
		}
	}
}
