package recovery

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"skerry/internal/record"
)

// series makes seconds from the rates of operations; the p99 of each is 1 ms.
func series(rates ...int64) []Bin {
	bins := make([]Bin, len(rates))
	for i, n := range rates {
		bins[i] = Bin{At: float64(i), Length: 1, OK: n, P99: 1000}
	}
	return bins
}

// repeat is n times the rate.
func repeat(rate int64, n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = rate
	}
	return out
}

func rates(parts ...[]int64) (all []int64) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

var about = cmpopts.EquateApprox(0, 1e-9)

func TestOutage(t *testing.T) {
	// Twenty good seconds, four without an answer, two of half the rate, one above, then as before.
	bins := series(rates(repeat(100, 20), repeat(0, 4), repeat(50, 2), []int64{130}, repeat(100, 20))...)
	for i := 20; i < 24; i++ {
		bins[i].Failed = 10
	}
	got := measureEvent(bins, 20, 47, Rules{})
	want := record.Recovery{
		BaselineS: 20, BaselineOps: 100, BaselineP99US: 1000, WatchedS: 27,
		Availability: 2230.0 / 2270, AvailabilityTime: 21.0 / 27,
		UnresponsivePeriods: 1, UnresponsiveS: 4, LongestUnresponsiveS: 4,
		RecoverS: 6, DipDepth: 1, DipOps: 500, OvershootOps: 30, SLAViolationS: 6,
	}
	if diff := cmp.Diff(want, got, about); diff != "" {
		t.Error(diff)
	}
}

func TestRecoveryRules(t *testing.T) {
	slow := func(bins []Bin, from, to int, p99 float64) []Bin {
		for i := from; i < to; i++ {
			bins[i].P99 = p99
		}
		return bins
	}
	for name, c := range map[string]struct {
		bins     []Bin
		at       float64
		rules    Rules
		recover  float64
		censored bool
	}{
		"nothing happens":     {series(repeat(100, 40)...), 20, Rules{}, 0, false},
		"never":               {series(rates(repeat(100, 20), repeat(80, 30))...), 20, Rules{}, 30, true},
		"too late to confirm": {series(rates(repeat(100, 20), repeat(0, 5), repeat(100, 9))...), 20, Rules{}, 14, true},
		"just in time":        {series(rates(repeat(100, 20), repeat(0, 5), repeat(100, 10))...), 20, Rules{}, 5, false},
		"a relapse counts": {series(rates(repeat(100, 20), repeat(0, 2), repeat(100, 5), repeat(10, 1), repeat(100, 12))...), 20,
			Rules{}, 8, false},
		"fast enough, but slow answers": {slow(series(repeat(100, 50)...), 20, 27, 2001), 20, Rules{}, 7, false},
		"within a second":               {series(rates(repeat(100, 20), repeat(0, 5), repeat(100, 20))...), 20.25, Rules{}, 4.75, false},
		"a shorter hold":                {series(rates(repeat(100, 20), repeat(0, 5), repeat(100, 3))...), 20, Rules{Hold: 3}, 5, false},
		"a laxer share":                 {series(rates(repeat(100, 20), repeat(80, 30))...), 20, Rules{Goodput: 0.75}, 0, false},
	} {
		got := measureEvent(c.bins, c.at, float64(len(c.bins)), c.rules)
		if math.Abs(got.RecoverS-c.recover) > 1e-9 || got.Censored != c.censored {
			t.Errorf("%s: recovered after %v (censored %t), want %v (%t)", name, got.RecoverS, got.Censored, c.recover, c.censored)
		}
	}
}

func TestBaselineWindow(t *testing.T) {
	bins := series(rates(repeat(1, 100), repeat(100, 60), repeat(0, 10))...)
	if got := measureEvent(bins, 160, 170, Rules{}); got.BaselineOps != 100 || got.BaselineS != 60 {
		t.Errorf("60 s: %v ops/s over %v s", got.BaselineOps, got.BaselineS)
	}
	if got := measureEvent(bins, 160, 170, Rules{Baseline: 120}); got.BaselineS != 120 || got.BaselineOps != 50.5 {
		t.Errorf("120 s: %v ops/s over %v s", got.BaselineOps, got.BaselineS)
	}
	warm := append([]Bin{{At: -2, Length: 1, OK: 9999}, {At: -1, Length: 1, OK: 9999}}, series(repeat(10, 5)...)...)
	if got := measureEvent(warm, 2, 5, Rules{}); got.BaselineOps != 10 || got.BaselineS != 2 {
		t.Errorf("the warm-up was used as baseline: %+v", got)
	}
	if got := measureEvent(warm, 0, 5, Rules{}); got.BaselineS != 0 || got.Censored || got.Availability != 1 {
		t.Errorf("without a baseline: %+v", got)
	}
}

func TestNextEventEndsMeasurement(t *testing.T) {
	bins := series(rates(repeat(100, 20), repeat(90, 5), repeat(0, 20))...)
	got := measureEvent(bins, 20, 25, Rules{})
	if got.WatchedS != 5 || got.UnresponsivePeriods != 0 || got.Availability != 1 {
		t.Errorf("%+v", got)
	}
}

func TestTakeover(t *testing.T) {
	bins := series(repeat(100, 30)...)
	bins[20].Writes = []uint64{1<<10 | 1<<12, 0} // 20.10 and 20.12, before the event at 20.3
	bins[23].Writes = []uint64{0, 1 << 6}        // 23.70
	got := measureEvent(bins, 20.3, 30, Rules{})
	if got.TakeoverS == nil || math.Abs(*got.TakeoverS-3.4) > 1e-9 {
		t.Errorf("takeover %v, want 3.4", got.TakeoverS)
	}
	if got := measureEvent(bins, 24, 30, Rules{}); got.TakeoverS != nil {
		t.Errorf("takeover %v without any write", *got.TakeoverS)
	}
}

func TestEmptyMeasurementIsFinite(t *testing.T) {
	for _, bins := range [][]Bin{nil, series(0, 0, 0), {{At: 0, Length: 0, OK: 5}}} {
		got := measureEvent(bins, 1, 3, Rules{})
		for _, f := range []float64{got.Availability, got.AvailabilityTime, got.DipDepth, got.RecoverS, got.BaselineOps} {
			if math.IsNaN(f) || math.IsInf(f, 0) {
				t.Errorf("%v: %+v", bins, got)
			}
		}
	}
}

func moment(s float64) *record.Moment { return &record.Moment{NS: int64(s * 1e9)} }

func TestMeasureEvents(t *testing.T) {
	bins := series(rates(repeat(100, 20), repeat(0, 5), repeat(100, 15), repeat(50, 20))...)
	events := []record.Event{
		{Kind: "scale"}, // of the trial itself
		{ID: 3, Kind: "kill", Apply: &record.Step{Due: *moment(40), Began: moment(40), Accepted: moment(40), Completed: moment(40)}},
		{ID: 1, Kind: "leave", Name: "one goes", Apply: &record.Step{Due: *moment(20), Began: moment(20), Accepted: moment(21),
			Completed: moment(24.5)},
			Revert: &record.Step{Began: moment(30), Completed: moment(31)}},
		{ID: 2, Kind: "cpu", State: record.EventSkipped},
		{ID: 4, Kind: "late", Apply: &record.Step{Began: moment(61)}},
	}
	got := MeasureEvents(events, bins, 60, Rules{})
	if len(got) != 2 || got[0].Name != "one goes" || got[1].Name != "kill" {
		t.Fatalf("%+v", got)
	}
	leave, kill := got[0], got[1]
	if leave.AtS != 20 || *leave.AcceptedS != 1 || *leave.CompleteS != 4.5 || *leave.RevertedS != 31 {
		t.Errorf("%+v", leave)
	}
	if r := leave.Recovery; r.WatchedS != 20 || r.Censored || r.RecoverS != 5 {
		t.Errorf("the recovery is observed past the next event: %+v", r)
	}
	if r := kill.Recovery; !r.Censored || r.RecoverS != 20 || r.DipDepth < 0.4 {
		t.Errorf("%+v", r)
	}
}

func TestSimultaneousEvents(t *testing.T) {
	bins := series(rates(repeat(100, 20), repeat(0, 5), repeat(100, 15))...)
	events := []record.Event{
		{ID: 1, Kind: "kill", Apply: &record.Step{Began: moment(20)}},
		{ID: 2, Kind: "kill", Apply: &record.Step{Began: moment(20.002)}},
	}
	for _, h := range MeasureEvents(events, bins, 40, Rules{}) {
		if h.Recovery.Censored || h.Recovery.WatchedS < 19 {
			t.Errorf("%+v", h)
		}
	}
}
