package load

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestDisturbance checks, for samples 10 ms apart, which spans are disturbed and which operations
// they affect.
func TestDisturbance(t *testing.T) {
	type look struct{ stolen, waited time.Duration }
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		looks     []look       // at 10 ms, 20 ms ...
		ended     []completion // in the last sample
		marked    time.Duration
		ok        int64
		responses int64
		late      int64
	}{
		"nothing":             {[]look{{}, {}}, []completion{{5 * ms, 5 * ms, 15 * ms, false}}, 0, 0, 0, 0},
		"short waits":         {[]look{{}, {0, ms}}, []completion{{5 * ms, 5 * ms, 15 * ms, false}}, 0, 0, 0, 0},
		"ends in one":         {[]look{{}, {10 * ms, 0}}, []completion{{5 * ms, 5 * ms, 15 * ms, false}}, 10 * ms, 1, 1, 0},
		"starts in one":       {[]look{{0, 5 * ms}, {}, {}}, []completion{{5 * ms, 6 * ms, 25 * ms, false}}, 10 * ms, 0, 1, 0},
		"sent after one":      {[]look{{}, {0, 5 * ms}, {}, {}}, []completion{{5 * ms, 22 * ms, 35 * ms, false}}, 10 * ms, 0, 1, 0},
		"spans one":           {[]look{{}, {0, 5 * ms}, {}, {}}, []completion{{5 * ms, 5 * ms, 35 * ms, false}}, 10 * ms, 0, 0, 0},
		"reported at its end": {[]look{{}, {}, {0, 25 * ms}}, []completion{{ms, ms, 8 * ms, false}}, 25 * ms, 1, 1, 0},
		"adjacent marks":      {[]look{{0, 5 * ms}, {0, 15 * ms}}, nil, 20 * ms, 0, 0, 0},
		"woke up late":        {[]look{{}, {}, {0, 15 * ms}}, []completion{{4 * ms, 0, 26 * ms, true}, {ms, 0, 2 * ms, true}}, 15 * ms, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShard()
			var now look
			m := newDisturbanceTracker([]*shard{s}, func() (time.Duration, time.Duration) { return now.stolen, now.waited }, 0)
			at := time.Duration(0)
			for i, l := range tt.looks {
				if at, now = at+10*ms, l; i == len(tt.looks)-1 {
					s.recent = append(s.recent, tt.ended...)
				}
				m.sample(at)
			}
			now = look{}
			got := m.flush(at)
			if got == nil {
				got = &Disturbance{}
			}
			type figures struct {
				For                  time.Duration
				OK, Responses, Lates int64
			}
			if d := cmp.Diff(figures{tt.marked, tt.ok, tt.responses, tt.late},
				figures{got.For, got.Ended, got.Response.Count(), got.Late.Count()}); d != "" {
				t.Error(d)
			}
			if again := m.flush(at + time.Second); again != nil {
				t.Errorf("next interval: got %+v", again)
			}
		})
	}
}

// TestDisturbanceWithinInterval drives for real: on a busy machine, too, the disturbance is part of
// the interval.
func TestDisturbanceWithinInterval(t *testing.T) {
	w := workload(t, "c", nil)
	var all, held Totals
	var ended int64
	_, err := Run(t.Context(), Spec{Workload: w, Threads: 8, Seed: 1, Duration: 300 * time.Millisecond}, loaded(t, w).open, func(i Interval) {
		all.Merge(i.Totals)
		if i.Disturbance != nil {
			held.Latency.Response.Merge(i.Disturbance.Response)
			held.Late.Merge(i.Disturbance.Late)
			ended += i.Disturbance.Ended
			if i.Disturbance.For > i.Length+20*time.Millisecond {
				t.Errorf("%v of %v are marked", i.Disturbance.For, i.Length)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	before := all.Latency.Response.Count()
	all.Latency.Response.Subtract(held.Latency.Response)
	if got := all.Latency.Response.Count(); got != before-held.Latency.Response.Count() || ended > held.Latency.Response.Count() {
		t.Errorf("%d responses, %d of them held, %d that ended in a mark, leave %d", before, held.Latency.Response.Count(), ended, got)
	}
}
