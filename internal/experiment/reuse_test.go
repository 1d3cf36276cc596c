package experiment

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const shared = `
name: x
topology: mesh:3
database: redis
workload: {name: a, records: 100}
matrix: {database: [redis, etcd], scale: [0.5, 1, 2]}
repetitions: 4
reuse: true
`

func TestTrialsOfOneClusterAreConsecutive(t *testing.T) {
	e := parse(t, shared)
	orders := map[string]bool{}
	for r := range e.Repetitions {
		var databases []string
		order := ""
		for _, c := range e.Plan()[r*6 : (r+1)*6] {
			if c.Repetition != r+1 {
				t.Fatalf("trial %d of repetition %d runs in repetition %d", c.ID, c.Repetition, r+1)
			}
			databases = append(databases, c.Experiment.Database.Name)
			order += string(rune('a' + (c.ID-1)%6))
		}
		changes := 0
		for i := 1; i < len(databases); i++ {
			if databases[i] != databases[i-1] {
				changes++
			}
		}
		if changes != 1 {
			t.Errorf("repetition %d changes its cluster %d times: %v", r+1, changes, databases)
		}
		orders[order] = true
	}
	if len(orders) < 2 {
		t.Error("every repetition has the same order")
	}
}

func TestClusterKey(t *testing.T) {
	e := parse(t, shared)
	keys := map[string]bool{}
	for _, c := range e.Plan() {
		keys[c.Experiment.ClusterKey()] = true
	}
	if len(keys) != 2 || keys[""] {
		t.Errorf("%d cluster keys, want one per database", len(keys))
	}
	for _, c := range parse(t, shared, "reuse=false").Plan() {
		if c.Experiment.ClusterKey() != "" {
			t.Errorf("trial %d shares its cluster by default", c.ID)
		}
	}
}

func TestReuseRefusesLeftovers(t *testing.T) {
	for set, want := range map[string]string{
		"events=[{at: 5s, kill: n2}]":          "events would change",
		"topology.defaults={flavor: t2.small}": "CPU credits",
	} {
		_, err := Parse("x.yaml", []byte(shared), []string{set}, false)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
}

func TestEstimateIncludesClusterFormation(t *testing.T) {
	for clusters, sets := range map[int][]string{
		24: {"reuse=false"},
		1:  {"matrix={scale: [0.5, 1, 2]}"}, // reused through all repetitions
		2:  {"repetitions=1"},
	} {
		without, _ := parse(t, shared, slices.Concat(sets, []string{"reuse=false"})...).Estimate()
		with, known := parse(t, shared, slices.Concat(sets, []string{"cluster_warmup=1m"})...).Estimate()
		if got, want := with-without, time.Duration(clusters)*(time.Minute+3*memberTime); !known || got != want {
			t.Errorf("%v: %v more, want %v", sets, got, want)
		}
	}
}
