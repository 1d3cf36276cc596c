package e2e

import (
	"strings"
	"testing"

	"skerry/internal/record"
)

// The first trial's cluster is broken, so no trial reuses it. The second trial's cluster is warmed up with both
// workloads, emptied, and used by all later trials.
func TestTrialsReuseOneCluster(t *testing.T) {
	b := newBench(t)
	r := b.command("run", b.write("small.yaml", small), "--set", "reuse=true", "--set", "cluster_warmup=2s", "--set", "stop.time=5s").start()
	b.measuring(b.path("runs/latest"))
	b.kill("redis-server")
	if code := r.wait(); code != 1 {
		t.Fatalf("exit %d, want 1\n%s", code, r.stderr.String())
	}
	var order []record.Trial
	s := b.summary(b.path("runs/latest"))
	for _, p := range b.plan(b.path("runs/latest")) {
		for _, x := range s.Trials {
			if x.ID == p.ID {
				order = append(order, x)
			}
		}
	}
	if len(order) != 4 || order[0].State != record.TrialFailed || !strings.Contains(order[0].Error, "redis failed during the measurement: ") {
		t.Fatalf("%d trials, the first %+v\n%s", len(order), order[0], r.stderr.String())
	}
	for i, x := range order[1:] {
		want := order[1].ID
		if i == 0 {
			want = 0
		}
		if x.State != record.TrialOK || x.Outcomes.OK == 0 || x.ClusterOf != want {
			t.Errorf("trial %d: %s %s, %d ok, cluster of %d, want %d", x.ID, x.State, x.Error, x.Outcomes.OK, x.ClusterOf, want)
		}
		if warmed, made := b.eventsOf(x.ID)["warm-up"], i == 0; (warmed.Kind != "") != made {
			t.Errorf("trial %d, which formed the cluster %v: warmed up %q", x.ID, made, warmed.Message)
		} else if made && (!strings.Contains(warmed.Message, "of 2 workloads") || strings.Contains(warmed.Message, " 0 operations")) {
			t.Errorf("trial %d: %q", x.ID, warmed.Message)
		}
	}
	for _, l := range leftoversOf(r.cmd.Process.Pid) {
		t.Errorf("left behind: %s", l)
	}
}

// Clusters that trials do not share are warmed up, too, each with its trial's workload, and emptied, also before
// events.
func TestUnsharedClustersAreWarmedUp(t *testing.T) {
	b := newBench(t)
	b.run(0, "run", b.write("small.yaml", small), "--set", "matrix={workload: [a, e]}", "--set", "cluster_warmup=1s", "--set", "events=[{at: 1s, for: 500ms, pause: Bergen}]")
	s := b.summary(b.path("runs/latest"))
	if len(s.Trials) != 2 {
		t.Fatalf("%d trials, want 2", len(s.Trials))
	}
	for _, x := range s.Trials {
		if x.State != record.TrialOK || x.Outcomes.OK == 0 || x.Load.Records != 300 {
			t.Errorf("trial %d: %s %s, %d ok, loaded %+v", x.ID, x.State, x.Error, x.Outcomes.OK, x.Load)
		}
		if warmed := b.eventsOf(x.ID)["warm-up"].Message; !strings.HasSuffix(warmed, " operations of its workload") || strings.Contains(warmed, " 0 operations") {
			t.Errorf("trial %d: warmed up %q", x.ID, warmed)
		}
	}
}
