package experiment

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/base/strict"
	"skerry/internal/link"
)

const ms = time.Millisecond

// at samples the profile of one link.
func at(t *testing.T, e Experiment, id string, times ...time.Duration) [][2]link.Quality {
	t.Helper()
	cloud, err := e.Cloud()
	if err != nil {
		t.Fatal(err)
	}
	profiles, err := e.LinkProfiles(cloud)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range profiles {
		if p.ID == id {
			var qs [][2]link.Quality
			for _, x := range times {
				qs = append(qs, [2]link.Quality{p.AB.At(x), p.BA.At(x)})
			}
			return qs
		}
	}
	return nil
}

func TestSteps(t *testing.T) {
	e := parse(t, small+`
scale: 0.5
drift:
  steps:
    - {at: 1s, scale: 1}
    - {at: 2s, links: [{between: [n2, n1], latency: 3ms, forward: {loss: 1%}}]}
    - {at: 3s, scale: 2}
`)
	both := func(q link.Quality) [2]link.Quality { return [2]link.Quality{q, q} }
	lossy := [2]link.Quality{{Latency: 3 * ms}, {Latency: 3 * ms, Loss: 0.01}} // n2 to n1 is the reverse direction
	want := [][2]link.Quality{both(link.Quality{Latency: 5 * ms}), both(link.Quality{Latency: 10 * ms}), lossy, lossy}
	if diff := cmp.Diff(want, at(t, e, "n1~n2", 0, 1500*ms, 2*time.Second, 10*time.Second)); diff != "" {
		t.Errorf("n1~n2: -want +got:\n%s", diff)
	}
	want = [][2]link.Quality{both(link.Quality{Latency: 5 * ms}), both(link.Quality{Latency: 10 * ms}), both(link.Quality{Latency: 20 * ms})}
	if diff := cmp.Diff(want, at(t, e, "n3~n4", 0, 2*time.Second, 3*time.Second)); diff != "" {
		t.Errorf("n3~n4: -want +got:\n%s", diff)
	}
}

// A step changes one of several links between two nodes by its name, or all of them.
func TestStepsOfParallelLinks(t *testing.T) {
	const cloud = `
name: x
topology: {nodes: [a, b, c], overlay: babel, links: [{between: [a, b], latency: 1ms}, {name: spare, between: [a, b], latency: 2ms}, {between: [b, c], latency: 1ms}]}
database: etcd
workload: a
stop: {time: 10s}
`
	for name, want := range map[string][2]time.Duration{"a~b#1": {9 * ms, 2 * ms}, "spare": {1 * ms, 9 * ms}, "": {9 * ms, 9 * ms}} {
		e := parse(t, cloud+"drift: {steps: [{at: 1s, scale: 1}, {at: 1s, links: [{name: '"+name+"', between: [a, b], latency: 9ms}]}]}\n")
		for i, id := range []string{"a~b#1", "spare"} {
			got := []time.Duration{1 * ms, 2 * ms}[i]
			if qs := at(t, e, id, 2*time.Second); qs != nil {
				got = qs[0][0].Latency
			}
			if got != want[i] {
				t.Errorf("after a step for %q, the latency of %s is %v, want %v", name, id, got, want[i])
			}
		}
	}
	_, err := Parse("x.yaml", []byte(cloud+"drift: {steps: [{at: 1s, links: [{name: spar, between: [a, b], latency: 9ms}]}]}\n"), nil, false)
	if err == nil || !strings.Contains(err.Error(), `no link between [a b] has the name "spar"`) {
		t.Errorf("error %v", err)
	}
}

// A trace with outages written as a bandwidth of 0 is rejected once, with the correct form.
func TestOutageInTrace(t *testing.T) {
	trace, err := filepath.Abs("../../test/corpus/traces/lte-tunnel.csv")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Parse("x.yaml", []byte(small+"stop: {time: 10s}\ndrift: {trace: "+trace+"}\n"), nil, false)
	var ps strict.Problems
	if !errors.As(err, &ps) || len(ps) != 1 {
		t.Fatalf("%d problems, want 1: %v", len(ps), err)
	}
	if p := ps[0]; p.Pos.Line != 5 || p.Message != "bandwidth must not be 0 (also in 2 more rows)" ||
		!strings.Contains(p.Hint, "write loss 100%") {
		t.Errorf("line %d: %s (%s)", p.Pos.Line, p.Message, p.Hint)
	}
}

func TestTrace(t *testing.T) {
	dir := t.TempDir()
	csv := "time_s, from, to, latency, bandwidth_mbit, loss\n0.5,n1,n2,7ms,5,\n1,n2,,,,2%\n2,n1,n2,,1,\n"
	if err := os.WriteFile(filepath.Join(dir, "t.csv"), []byte(csv), 0o644); err != nil {
		t.Fatal(err)
	}
	e, err := Parse(filepath.Join(dir, "e.yaml"), []byte(small+"drift: {trace: t.csv}"), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	base := link.Quality{Latency: 10 * ms}
	back := link.Quality{Latency: 10 * ms, Loss: 0.02}
	want := [][2]link.Quality{
		{base, base},
		{{Latency: 7 * ms, Bandwidth: 5e6}, base},
		{{Latency: 7 * ms, Bandwidth: 5e6}, back},
		{{Latency: 7 * ms, Bandwidth: 1e6}, back},
	}
	if diff := cmp.Diff(want, at(t, e, "n1~n2", 0, 500*ms, time.Second, 3*time.Second)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMobility(t *testing.T) {
	e := parse(t, `
name: ship
topology: {sites: [{name: A, lat: 0, lon: 0}, {name: B, lat: 0, lon: 1}, {name: Ship, lat: 0, lon: 0.5}]}
database: redis
workload: a
drift: {mobility: {sites: [{site: Ship, waypoints: [{at: 0s, lat: 0, lon: 0.5}, {at: 10s, lat: 0, lon: 2}]}]}}
`)
	got := at(t, e, "client~Ship", 0, 10*time.Second)
	if len(got) != 2 || got[1][0].Latency < 3*got[0][0].Latency || got[0][0].Bandwidth != 1e9 || got[1][1].Bandwidth >= 5e8 {
		t.Errorf("links from the client to the ship at scales 1 and 4: %+v", got)
	}
	if still := at(t, e, "A~B", 0); still != nil {
		t.Errorf("latencies of A and B differ: %v", still)
	}
}

// A drift that reduces a latency below the range of its jitter is rejected, with link and time.
func TestDriftBelowJitter(t *testing.T) {
	const text = `
name: x
topology: {sites: [A, B], defaults: {rtt: 40ms, jitter: 5ms}}
database: redis
workload: {name: a}
stop: {time: 10s}
drift: {steps: [{at: 2s, links: [{between: [A, B], rtt: 4ms}]}]}
`
	_, err := Parse("x.yaml", []byte(text), nil, false)
	if err == nil || !strings.Contains(err.Error(), "A~B after 2s") || !strings.Contains(err.Error(), "at most 1ms") {
		t.Errorf("error %v", err)
	}
}
