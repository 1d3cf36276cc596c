package choose

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skerry/internal/experiment"
)

const ownAurora = `{name: aurora, database: {name: middle, cluster: {servers_from: ./servers, timeout: 10s}}}`

// A cluster that Skerry did not start is measured on the quiet day. Its bad days and what Skerry cannot see there are
// never passed, although it is the fastest.
func TestOwnCluster(t *testing.T) {
	count := 0
	dir := t.TempDir()
	c := plan(t, dir, needsText+"consider: ["+ownAurora+", slow]\n")
	if err := c.Run(t.Context(), measure(t, &count), silent); err != nil {
		t.Fatal(err)
	}
	a := c.Answer()
	const never = "bad days were not tried: Skerry cannot break this cluster"
	if !strings.HasPrefix(a.Sentence, "Use slow (safe): p99 3") || !strings.Contains(a.Sentence, "aurora (middle) had p99 2") ||
		!strings.Contains(a.Sentence, never) || a.Err() != nil {
		t.Errorf("the sentence is %q: %v", a.Sentence, a.Err())
	}
	i := slices.IndexFunc(a.Candidates, func(v Verdict) bool { return v.Own == "aurora" })
	if i != 1 || a.Candidates[i].Out != "partly" {
		t.Fatalf("the candidates are %+v", a.Candidates)
	}
	v := a.Candidates[i]
	for _, want := range []string{never, "read: linearizable: "} {
		if !strings.Contains(v.Why, want) {
			t.Errorf("%q does not contain %q", v.Why, want)
		}
	}
	for _, n := range v.Needs {
		want := NotMeasured
		if n.Day == "quiet" {
			want = Met
		}
		if n.State != want || (n.State == NotMeasured) != (n.Why == never) {
			t.Errorf("%+v, want %s", n, want)
		}
	}
	if len(v.Runs) != 1 || len(v.Runs["quiet"]) < 2 {
		t.Errorf("its runs are %v, want several, all on the quiet day", v.Runs)
	}
	notes := strings.Join(a.Notes, "\n")
	for _, want := range []string{"over its own network", "aurora (middle): cost.memory is not measured: Skerry does not see"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not contain %q:\n%s", want, notes)
		}
	}
	path := filepath.Join(dir, v.Files["quiet"])
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e, err := experiment.Parse(path, text, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if k := e.Database.Cluster; k == nil || k.ServersFrom != "./servers" || k.Dir != filepath.Dir(c.Needs.path) || e.NeedsLab() {
		t.Errorf("the experiment has %+v, want its commands in the folder of the needs file:\n%s", k, text)
	}
}

// Clusters that Skerry did not start need no cloud. What can be measured on them is compared in full.
func TestOwnClustersOnly(t *testing.T) {
	count := 0
	text := "load: {target: 50}\nmust: [p99 < 400ms]\nprefer: [p99]\nconsider: [" + ownAurora +
		", {name: ours, database: {name: slow, cluster: ['127.0.0.1:1']}}]\n"
	c := plan(t, t.TempDir(), text)
	if c.NeedsLab() || c.FirstCommand() != "servers_from: ./servers" {
		t.Errorf("needs a lab: %v, runs %q", c.NeedsLab(), c.FirstCommand())
	}
	if err := c.Run(t.Context(), measure(t, &count), silent); err != nil {
		t.Fatal(err)
	}
	if a := c.Answer(); !strings.HasPrefix(a.Sentence, "Use aurora (middle): p99 2") || strings.Contains(a.Sentence, "not measured") {
		t.Errorf("the answer's sentence is %q", a.Sentence)
	}
	count = 0
	c = plan(t, t.TempDir(), text+"bad_days: [killed: any]\n")
	if err := c.Run(t.Context(), measure(t, &count), silent); err != nil {
		t.Fatal(err)
	}
	if a := c.Answer(); !errors.Is(a.Err(), ErrNothing) || !strings.HasPrefix(a.Sentence, "No candidate was measured completely") ||
		!strings.Contains(a.Sentence, "aurora (middle) had p99 2") {
		t.Errorf("%v, want ErrNothing: %s", a.Err(), a.Sentence)
	}
}

// A metric that Skerry cannot see on a cluster cannot rank it.
func TestOwnClusterCannotBeRanked(t *testing.T) {
	c := plan(t, t.TempDir(), strings.Replace(needsText, "[p99, cost.memory]", "[cost.memory]", 1)+"consider: ["+ownAurora+", slow]\n")
	i := slices.IndexFunc(c.Excluded, func(x Excluded) bool { return x.Who == "aurora (middle)" })
	if len(c.Candidates) != 1 || i < 0 || !strings.Contains(c.Excluded[i].Why, "Skerry does not see") {
		t.Errorf("%+v, excluded %+v", c.Candidates, c.Excluded)
	}
}
