package engines

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"skerry/internal/record"
	"skerry/internal/report/compare"
	"skerry/test/testkit"
)

// tolerated is the permitted difference of a figure in addition to its interval: encryption costs a fifth of a
// millisecond of a round trip of ten.
const tolerated = 0.02

// The quickstart has the same results on three machines as on one: all of its trials are valid, and the intervals of
// throughput and latency overlap.
func TestQuickstartOnMachines(t *testing.T) {
	testkit.OptIn(t, "SKERRY_QUICKSTART", "1 for the quickstart on one machine and on three; twelve minutes")
	file, err := os.ReadFile("../../experiments/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := newRoom(t)
	r.reachable()
	r.write("three.yaml", threeMachines)
	r.write("quickstart.yaml", string(file))
	for dir, more := range map[string]string{"one": "", "three": "--machines three.yaml"} {
		out, err := r.machines["h1"].command("bash", "-ec", `cd "$0"; ./skerry run quickstart.yaml --set repetitions=3 --out /root/runs `+more+` && cp -rL /root/runs/latest "$0/`+dir+`"`, r.share).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", dir, err, out)
		}
		for _, x := range r.trials(dir, 12) {
			if x.Verdict.State != record.Valid {
				t.Errorf("%s: trial %d is %s: %v", dir, x.ID, x.Verdict.State, x.Verdict.Reasons)
			}
		}
	}
	both, err := compare.Runs([]string{r.path("one"), r.path("three")}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(both.Pairs) != 4 {
		t.Fatalf("%d pairs of cells, want 4", len(both.Pairs))
	}
	for _, p := range both.Pairs {
		for _, m := range p.Metrics {
			if m.Name != "goodput" && m.Name != "read.mean" {
				continue
			}
			t.Logf("%v: %s", p.A, m.Sentence)
			if m.DifferenceCI95 == nil || m.Change == nil || math.Abs(m.Difference) > *m.DifferenceCI95 && math.Abs(*m.Change) > tolerated {
				t.Errorf("%s differs: %s", m.Name, m.Sentence)
			}
		}
	}
}

// FHC's grid runs on eight machines, a datacentre on each, with one more flag.
func TestFHCOnMachines(t *testing.T) {
	testkit.OptIn(t, "SKERRY_FHC", "1 for the short form of FHC's grid on eight machines; five minutes")
	file, err := os.ReadFile("../../experiments/fhc/latency.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := newRoom(t)
	r.reachable()
	eight, third := threeMachines, strings.Split(strings.TrimSpace(threeMachines), "\n")[3]
	for n := 4; n <= 8; n++ {
		r.answering(n, r.image())
		eight += strings.NewReplacer("three", fmt.Sprint("m", n), "10.99.0.3", fmt.Sprint("10.99.0.", n)).Replace(third) + "\n"
	}
	r.write("eight.yaml", eight)
	r.write("latency.yaml", string(file))
	out, err := r.machines["h1"].command("bash", "-ec", `cd "$0"; ./skerry run latency.yaml --fast --machines eight.yaml --out /root/runs && cp -rL /root/runs/latest "$0/run"`, r.share).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, x := range r.trials("run", 4) {
		t.Logf("trial %d: %v, %.4g operations a second, %s %v", x.ID, x.Parameters, x.Goodput, x.Verdict.State, x.Verdict.Reasons)
		if x.State != record.TrialOK || len(x.Fidelity.Machines) != 8 {
			t.Errorf("trial %d: %s %s, on %d machines of 8", x.ID, x.State, x.Error, len(x.Fidelity.Machines))
		}
	}
}
