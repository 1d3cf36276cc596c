package hbase

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// leavesNothing fails a test that leaves files of Java's servers and libraries in the temporary folder: killed web
// servers do not remove them.
func leavesNothing(t *testing.T) {
	t.Helper()
	before := leftovers(t)
	t.Cleanup(func() {
		for _, path := range leftovers(t) {
			if !slices.Contains(before, path) {
				t.Errorf("%s is left", path)
			}
		}
	})
}

func leftovers(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"jetty-*", "hbase-*", "hadoop-*"} {
		found, err := filepath.Glob(filepath.Join(os.TempDir(), pattern))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}
