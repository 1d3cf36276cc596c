package servicebench

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/topology"
)

func TestFigures(t *testing.T) {
	f := figure([]float64{4, 1, 3, 2})
	if f.Median != 2.5 || f.Mean != 2.5 || f.Half < 2 || f.Half > 2.1 { // t(3) = 3.182, SD 1.291
		t.Errorf("%+v", f)
	}
	if f := figure([]float64{7}); f.Median != 7 || f.Half != 0 {
		t.Errorf("one value: %+v", f)
	}
	// What meets all kinds alike in a round is no part of an overhead.
	d := over([]float64{11, 101, 1001}, []float64{10, 100, 1000})
	if d.Median != 1 || d.Mean != 1 || d.Half > 1e-9 {
		t.Errorf("difference %+v", d)
	}
}

func TestRoundsHoldEverythingOnce(t *testing.T) {
	seen := map[[2]int]int{}
	var order [][]int
	o := Options{Rounds: 20, Seed: 1}
	err := o.rounds(4, func(round, i int) error {
		if len(order) == round {
			order = append(order, nil)
		}
		order[round] = append(order[round], i)
		seen[[2]int{round, i}]++
		return nil
	})
	if err != nil || len(seen) != 80 {
		t.Errorf("%d of 80 measurements, %v", len(seen), err)
	}
	if cmp.Equal(order[0], order[1]) && cmp.Equal(order[1], order[2]) {
		t.Errorf("always the same order: %v", order[0])
	}
}

// Every kind makes a topology, and none comes first.
func TestKinds(t *testing.T) {
	for _, k := range Kinds() {
		s := &stand{kind: k}
		cloud, err := s.cloud()
		if err != nil || len(cloud.Nodes) != members+1 || cloud.Service.Enabled() == (k == topology.NoService) {
			t.Errorf("%s: %d nodes, service %+v, %v", k, len(cloud.Nodes), cloud.Service, err)
		}
		for _, l := range cloud.Links {
			if l.AB.Latency != 0 {
				t.Errorf("%s: the link %s has a latency of %v", k, l.ID, l.AB.Latency)
			}
		}
	}
	if _, err := (&stand{kind: "ingress"}).cloud(); err == nil {
		t.Error("an unknown kind is measured")
	}
	if diff := cmp.Diff([]string{"none", "central"}, withNone([]string{"central"})); diff != "" {
		t.Error(diff)
	}
}

func TestText(t *testing.T) {
	r := Result{Cores: 2, Kernel: "6.1", Services: []Cost{
		{Kind: "none", Figures: Figures{P50: figure([]float64{70, 72})}},
		{Kind: "central", Over: &Figures{P50: figure([]float64{5})}},
	}, Volumes: []Volume{{Kind: "loop", Skipped: "no loop device"}}}
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"71 [58.29, 83.71]", "+5", "skipped: no loop device"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}
