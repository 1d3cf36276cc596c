package event

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// targets are whom the first turns of an event happen to.
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

func TestWhomItHappensTo(t *testing.T) {
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
		{"link_down: {between: [oslo, narvik]}", []string{"oslo~narvik narvik~client"}}, // the client stands in oslo
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
		t.Errorf("one seed draws two ways:\n%s", diff)
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
		if n := len(a.targets()); n != 2 { // one node from two others
			t.Errorf("%s: %d links", a.what(), n)
		}
	}
}

func TestWhatItSays(t *testing.T) {
	s := stage()
	for event, want := range map[string]string{
		"latency: {of: vardo, scale: 3}":                                          "latency of oslo~vardo, bergen~vardo, narvik~vardo, vardo~client x 3",
		"latency: {add: 20ms}":                                                    "latency of 10 links + 20ms",
		"loss: {of: client, set: 5%, one_way: true, choose: next}":                "loss of oslo~client, one way set to 5 %",
		"partition: {groups: [[oslo], [bergen, narvik]]}":                         "partition oslo | bergen narvik",
		"leave: {nodes: narvik, manner: abrupt}":                                  "narvik is lost and removed",
		"cpu: {nodes: data, cores: 0.5}":                                          "0.5 cores of oslo, bergen, narvik busy",
		"disk_slow: {nodes: oslo, write: 1MiB, read_ops: 10}":                     "disk of oslo slow: read 10 times/s, write 1MiB/s",
		"network_load: {from: oslo, to: bergen, rate: 10mbit, protocol: udp}":     "10mbit of udp load on oslo>bergen",
		"link_flap: {between: [bergen, narvik], down: 1s, up: 2s}":                "bergen~narvik flapping, 1s down, 2s up",
		"partition: {groups: [[oslo], [bergen], [narvik, vardo]], one_way: true}": "partition, one way: nothing passes from oslo to bergen, narvik vardo",
	} {
		e := read(t, fmt.Sprintf("- {at: 0s, %s}", event))[0]
		if got := e.Spec.spec.draw(s, 0, nil, rand.New(rand.NewPCG(1, 2))).what(); got != want {
			t.Errorf("%s: %q, want %q", event, got, want)
		}
	}
}
