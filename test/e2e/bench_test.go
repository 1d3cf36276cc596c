package e2e

import (
	"testing"

	"skerry/internal/lab/overlay/babel"
	"skerry/internal/testkit"
)

// What a benchmark has measured is told although it fails later: here a second mesh cannot be made.
func TestBenchTellsWhatItHas(t *testing.T) {
	testkit.Need(t, testkit.Installed(babel.About.Recipe))
	b := newBench(t)
	r := b.run(1, "bench", "route", "--nodes", "8,100", "--links", "8", "--failures", "0")
	contains(t, r.stdout.String(), "babel    8      8 ")
	contains(t, r.stderr.String(), "cannot join 100 nodes")
}
