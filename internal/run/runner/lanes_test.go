package runner

import (
	"testing"
	"time"
)

func TestEstimateOfFormingTrials(t *testing.T) {
	const minute, second = time.Minute, time.Second
	for _, test := range []struct {
		name string
		took trialTimes
		want time.Duration // for one trial that forms a cluster and nine that reuse it
	}{
		{"one", trialTimes{forming: []time.Duration{40 * second}}, 400 * second},
		{"after the first", trialTimes{forming: []time.Duration{4 * minute}, reusing: []time.Duration{40 * second}}, 600 * second},
		{
			"lower medians",
			trialTimes{forming: []time.Duration{5 * minute, 4 * minute}, reusing: []time.Duration{50 * second, 70 * second, 30 * second}},
			690 * second,
		},
		{"a resumed run", trialTimes{reusing: []time.Duration{40 * second}}, 400 * second},
	} {
		if got := test.took.estimate(1, 9); got != test.want {
			t.Errorf("%s: %v left, want %v", test.name, got, test.want)
		}
	}
}

func TestCountForming(t *testing.T) {
	const clusters = "matrix={database: [redis, etcd], scale: [0.5, 2, 1]}"
	for _, test := range []struct {
		set              string
		forming, reusing int // trials of two clusters in each of two repetitions
	}{{"reuse=false", 12, 0}, {"reuse=true", 4, 8}} {
		e := loadExperiment(t, clusters, "seed=2", test.set)
		r := &run{clusterKeys: map[int]string{}}
		for _, c := range e.Plan() {
			r.clusterKeys[c.ID] = c.Experiment.ClusterKey()
		}
		plan := planTrials(e)
		if forming, reusing := r.countForming("", plan); forming != test.forming || reusing != test.reusing {
			t.Errorf("%s: %d form a cluster and %d reuse one, want %d and %d", test.set, forming, reusing, test.forming, test.reusing)
		}
		if forming, _ := r.countForming(r.clusterKeys[plan[0].ID], plan[1:]); forming != test.forming-1 {
			t.Errorf("%s: %d form a cluster after the first, want %d", test.set, forming, test.forming-1)
		}
	}
}
