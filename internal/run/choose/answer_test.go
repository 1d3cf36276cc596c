package choose

import (
	"testing"

	"skerry/internal/evidence/race"
	"skerry/internal/record"
	"skerry/internal/record/metric"
)

// A candidate that waits for its first trial does not affect the answer.
func TestWaitingCandidateIsNotMentioned(t *testing.T) {
	measured := Verdict{ID: "a", Label: "a", Figures: []Figure{{Name: "p99", Mean: 3}}}
	waiting := Verdict{ID: "b", Label: "b", Out: race.Waiting}
	if got := (Answer{Candidates: []Verdict{measured, waiting}}).changes(); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// TestFigureDigits: the interval determines the digits.
func TestFigureDigits(t *testing.T) {
	for want, f := range map[string]Figure{
		"28.1 ms":                        {Unit: metric.Time, Mean: 0.02813},
		"28 ms (22 to 35)":               {Unit: metric.Time, Mean: 0.02813, Low: 0.02163, High: 0.03463},
		"590 MB (570 to 610)":            {Unit: metric.Bytes, Mean: 590.7e6, Low: 567.8e6, High: 613.6e6},
		"29 ms (11 to 47)":               {Unit: metric.Time, Mean: 0.02873, Low: 0.01093, High: 0.04653},
		"98.6 % (98.4 to 98.9)":          {Unit: metric.Share, Mean: 0.98612, Low: 0.98362, High: 0.98862},
		"1200 ops/s (1080 to 1320)":      {Unit: metric.Rate, Mean: 1203, Low: 1083, High: 1323},
		"0.5 cores (0.4 to 0.6)":         {Unit: metric.Cores, Mean: 0.5, Low: 0.4, High: 0.6},
		"3 s (0 to 12)":                  {Unit: metric.Time, Mean: 3.2, Low: 0.1, High: 12.3},
		"99.0 % (98.1 to 100.0)":         {Unit: metric.Share, Mean: 0.99, Low: 0.981, High: 1},
		"99.9967 % (99.9952 to 99.9982)": {Unit: metric.Share, Mean: 0.999967, Low: 0.999952, High: 0.999982},
	} {
		if got := f.String(); got != want {
			t.Errorf("%v: %q, want %q", f, got, want)
		}
	}
}

// TestShareIntervalEndsAtOne: the interval of a share ends at 100 %.
func TestShareIntervalEndsAtOne(t *testing.T) {
	trials := []record.Trial{
		{Outcomes: record.Outcomes{OK: 83, Failed: 17}},
		{Outcomes: record.Outcomes{OK: 99, Failed: 1}},
		{Outcomes: record.Outcomes{OK: 100}},
	}
	f, ok := meanFigure(trials, "availability")
	if want := "90 % (70 to 100)"; !ok || f.String() != want {
		t.Errorf("%v, want %s", f, want)
	}
}

// A share of 100 % in all trials is shown exactly, although the race uses a slightly smaller value for its logarithm.
func TestFullShareIsShownExactly(t *testing.T) {
	f, _ := meanFigure([]record.Trial{{Outcomes: record.Outcomes{OK: 9}}, {Outcomes: record.Outcomes{OK: 7}}}, "availability")
	if got := f.ranked(race.Standing{Quiet: 2, Score: leastShare, Low: leastShare / 2, High: 2 * leastShare}); got.String() != "100 %" {
		t.Errorf("%v, want 100 %%", got)
	}
}
