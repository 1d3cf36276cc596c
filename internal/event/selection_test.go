package event

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/link"
	"skerry/internal/topology"
)

// targets returns the targets of the first occurrences of an event.
func targets(t *testing.T, s Layout, event string, turns int) (all []string) {
	t.Helper()
	e := read(t, "- {at: 0s, "+event+"}")[0]
	r := rand.New(rand.NewPCG(1, 2))
	for turn := range turns {
		a := e.Spec.spec.draw(s, turn, nil, r)
		if a == nil {
			all = append(all, "")
			continue
		}
		all = append(all, strings.Join(a.targets(), " "))
	}
	return all
}

func TestTargets(t *testing.T) {
	s := stage()
	s.Unremovable = map[string]string{"oslo": "it was the first"}
	tests := []struct {
		event string
		want  []string
	}{
		{"kill: narvik", []string{"narvik"}},
		{"kill: [narvik, bergen]", []string{"narvik bergen"}},
		{"kill: data", []string{"oslo bergen narvik"}},
		{"kill: [bergen, data]", []string{"bergen oslo narvik"}},
		{"leave: {nodes: removable, choose: next}", []string{"bergen", "narvik", ""}},
		{"join: spare", []string{"vardo"}},
		{"pause: client", []string{"client"}},
		{"kill: {nodes: data, choose: next, count: 2}", []string{"oslo bergen", "narvik", ""}},
		{"link_down: {between: [oslo, narvik]}", []string{"oslo~narvik narvik~client"}}, // the client is in oslo
		{"link_down: {of: vardo}", []string{"oslo~vardo bergen~vardo narvik~vardo vardo~client"}},
		{"link_down: {of: client}", []string{"oslo~client bergen~client narvik~client vardo~client"}},
		{"link_down: {of: vardo, choose: next, count: 3}", []string{"oslo~vardo bergen~vardo narvik~vardo", "vardo~client", ""}},
		{"partition: {groups: [[vardo], [oslo, narvik]]}", []string{"oslo~vardo narvik~vardo vardo~client"}},
		{"network_load: {from: [oslo, bergen], to: bergen, rate: 1mbit}", []string{"oslo>bergen"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, targets(t, s, tt.event, len(tt.want))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.event, diff)
		}
	}
}

func TestRandomTargets(t *testing.T) {
	s := stage()
	const event = "kill: {nodes: data, choose: random, count: 2}"
	first := targets(t, s, event, 300)
	if diff := cmp.Diff(first, targets(t, s, event, 300)); diff != "" {
		t.Errorf("the same seed gives different choices:\n%s", diff)
	}
	seen := map[string]int{}
	for _, x := range first {
		seen[x]++
	}
	// Three pairs of three nodes, 100 of each expected; below 60 has a chance of 1e-7.
	if len(seen) != 3 || min(seen["oslo bergen"], seen["oslo narvik"], seen["bergen narvik"]) < 60 {
		t.Errorf("drawn: %v", seen)
	}
}

func TestSplit(t *testing.T) {
	p := Partition{Split: 2}
	s := stage()
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		a := p.draw(s, 0, nil, r)
		if n := len(a.targets()); n != 2 { // one node against two
			t.Errorf("%s: %d links", a.what(), n)
		}
	}
}

func TestDescriptions(t *testing.T) {
	s := stage()
	for event, want := range map[string]string{
		"latency: {of: vardo, scale: 3}": "latency of oslo~vardo, bergen~vardo, " +
			"narvik~vardo, vardo~client x 3",
		"latency: {add: 20ms}": "latency of 10 links + 20ms",
		"loss: {of: client, set: 5%, one_way: true, choose: next}":            "loss of oslo~client, one way set to 5 %",
		"partition: {groups: [[oslo], [bergen, narvik]]}":                     "partition oslo | bergen narvik",
		"leave: {nodes: narvik, manner: abrupt}":                              "narvik is lost and removed",
		"cpu: {nodes: data, cores: 0.5}":                                      "0.5 cores of oslo, bergen, narvik busy",
		"disk_slow: {nodes: oslo, write: 1MiB, read_ops: 10}":                 "disk of oslo slow: read 10 times/s, write 1MiB/s",
		"network_load: {from: oslo, to: bergen, rate: 10mbit, protocol: udp}": "10mbit of udp load on oslo>bergen",
		"link_flap: {between: [bergen, narvik], down: 1s, up: 2s}":            "bergen~narvik flapping, 1s down, 2s up",
		"partition: {groups: [[oslo], [bergen], [narvik, vardo]], one_way: true}": "partition, one way: " +
			"nothing passes from oslo to bergen, narvik vardo",
	} {
		e := read(t, fmt.Sprintf("- {at: 0s, %s}", event))[0]
		if got := e.Spec.spec.draw(s, 0, nil, rand.New(rand.NewPCG(1, 2))).what(); got != want {
			t.Errorf("%s: %q, want %q", event, got, want)
		}
	}
}

// Links cut one by one never disconnect a mesh; in the end a tree remains.
func TestConnectedSelection(t *testing.T) {
	spec := topology.Spec{From: "azure8", Mesh: topology.MeshSpec{Links: 64, Seed: 7}}
	cloud, err := spec.Build(".", os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	links := LinkSelector{Connected: true, Selection: Selection{Choose: "random", Count: 1}}
	stage := Layout{Topology: cloud}
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 0))
		down := map[string]bool{}
		for turn := 0; ; turn++ {
			taken := links.draw(stage, turn, down, r)
			if len(taken) == 0 {
				break
			}
			if down[taken[0].id] {
				t.Fatalf("%s was selected twice", taken[0].id)
			}
			down[taken[0].id] = true
			var names []string
			left := cloud
			left.Links = slices.DeleteFunc(slices.Clone(cloud.Links), func(l topology.Link) bool { return down[l.ID] })
			for _, n := range cloud.Nodes {
				names = append(names, n.Name)
			}
			if a, b, apart := left.FindDisconnected(names); apart {
				t.Fatalf("after %d cuts, %s and %s are disconnected", turn+1, a, b)
			}
		}
		if left := len(cloud.Links) - len(down); left != len(cloud.Nodes)-1 {
			t.Errorf("seed %d: %d links remain, want a tree of %d", seed, left, len(cloud.Nodes)-1)
		}
	}
}

func TestLinksByID(t *testing.T) {
	spec := topology.Spec{From: "azure8", Mesh: topology.MeshSpec{Links: 64, Seed: 7}}
	cloud, err := spec.Build(".", os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	id := cloud.Links[len(cloud.Links)-1].ID
	got := LinkSelector{IDs: Names{id}, Selection: Selection{Choose: "all"}}.draw(Layout{Topology: cloud}, 0, nil, nil)
	if len(got) != 1 || got[0].id != id || len(got[0].directions) != 2 {
		t.Errorf("%s chose %+v", id, got)
	}
}

// Each of several parallel links can be cut alone. The end of an event keeps what other events did
// to the links.
func TestParallelLinks(t *testing.T) {
	s := stage()
	s.Topology.Links = []topology.Link{{ID: "oslo~bergen#1", A: "oslo", B: "bergen"}, {ID: "spare", A: "oslo", B: "bergen"}}
	e := &engine{now: map[direction]link.Quality{}}
	w := &Testbed{Links: NewLinkLayers(s.Topology.Links, e)}
	apply := func(text string) action {
		t.Helper()
		a := read(t, "- {at: 0s, "+text+"}")[0].Spec.spec.draw(s, 0, nil, nil)
		if err := a.apply(context.Background(), w, new(progress)); err != nil {
			t.Fatal(err)
		}
		return a
	}
	check := func(after string, first, spare bool) {
		t.Helper()
		if got := [2]bool{e.now[direction{"oslo~bergen#1", false}].Down, e.now[direction{"spare", true}].Down}; got != [2]bool{first, spare} {
			t.Errorf("after %s: oslo~bergen#1 down %v, spare down %v, want %v and %v", after, got[0], got[1], first, spare)
		}
	}
	apply("link_down: {ids: [spare]}")
	check("link_down of one", false, true)
	both := apply("link_down: {between: [oslo, bergen]}")
	check("link_down of both", true, true)
	if err := both.revert(context.Background(), w, new(progress)); err != nil {
		t.Fatal(err)
	}
	check("its end", false, true)
	apply("link_up: {ids: ['oslo~bergen#1']}")
	check("link_up of the other", false, true)
	apply("link_up: {of: ['bergen~oslo#spare']}")
	check("link_up of the cut one", false, false)

	pair, err := Parse([]byte(`{link_down: {ids: ["oslo~bergen"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	err = CheckFired(pair, s, "double", database.Capabilities{})
	if want := "links between the two are oslo~bergen#1, spare; of: oslo~bergen means all of them"; !strings.Contains(advice.Of(err), want) {
		t.Errorf("error %v (%s) does not contain %q", err, advice.Of(err), want)
	}
}
