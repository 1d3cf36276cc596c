package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// own are commands in a directory, those that fail among them.
func own(dir string) []string {
	return []string{
		"mkdir " + dir + "/d", "mkdir -p " + dir + "/d/e/f", "create " + dir + "/d/x", "create " + dir + "/d/x", "write " + dir + "/d/y text", "stat " + dir + "/d/x", "ls -l " + dir + "/d",
		"read " + dir + "/d/y", "mv " + dir + "/d/x " + dir + "/d/z", "mv -f " + dir + "/d/y " + dir + "/d/z", "stat " + dir + "/d/x", "create " + dir + "/none/x", "find " + dir + "/d",
		"chmod 700 " + dir + "/d/z", "rm " + dir + "/d/z", "rmdir " + dir + "/d", "rm -r " + dir + "/d", "rmdir " + dir + "/d",
	}
}

// TestOwnSubtree has commands in a directory ask nobody but the server that has it: each
// that asked another would take as long as the way there. Only what the path leads through
// is asked for, once.
func TestOwnSubtree(t *testing.T) {
	w := newWorld(t)
	must(t, w.router(t, 0), "mkdir -p /own/g1", "mkdir -p /own/g2", "delegate /own/g2 g2", "mkdir -p /own/g2/n", "delegate /own/g2/n g3")
	for _, at := range []struct {
		dir   string
		first map[string]uint64 // requests of a router that knows nothing, until it knows the way
		home  string
	}{
		{"/own/g1", map[string]uint64{"g1": 1, "g2": 0, "g3": 0}, "g1"},
		{"/own/g2", map[string]uint64{"g1": 1, "g2": 1, "g3": 0}, "g2"},
		{"/own/g2/n", map[string]uint64{"g1": 1, "g2": 1, "g3": 1}, "g3"},
	} {
		r := w.router(t, 0)
		must(t, r, "ls "+at.dir)
		if diff := cmp.Diff(at.first, r.Asked()); diff != "" {
			t.Errorf("%s is found: %s", at.dir, diff)
		}
		for _, line := range own(at.dir) {
			before := r.Asked()
			do(t, r, line)
			after := r.Asked()
			if after[at.home] == before[at.home] {
				t.Errorf("%s asked nobody", line)
			}
			before[at.home] = after[at.home]
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("%s asked other servers: %s", line, diff)
			}
		}
	}
}
