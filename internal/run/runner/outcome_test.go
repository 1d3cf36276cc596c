package runner

import (
	"errors"
	"strings"
	"testing"

	"skerry/internal/record"
)

func TestAssertionErrorOfAllTrials(t *testing.T) {
	for name, c := range map[string]struct {
		held []bool // results of the second assertion in the two trials
		want string
	}{
		"all hold":                 {[]bool{true, true}, ""},
		"one does not hold":        {[]bool{true, false}, "1 of 2 assertions did not hold: goodput > 5"},
		"the same assertion twice": {[]bool{false, false}, "1 of 2 assertions did not hold: goodput > 5"},
	} {
		w, err := record.Create(t.TempDir(), record.Run{Name: "x", Plan: []record.Planned{{ID: 1}, {ID: 2}}})
		if err != nil {
			t.Fatal(err)
		}
		for i, held := range c.held {
			tw, err := w.OpenTrial(i + 1)
			if err != nil {
				t.Fatal(err)
			}
			err = tw.Finish(record.Trial{
				State:      record.TrialOK,
				Assertions: []record.Assertion{{Text: "failed == 0", Held: true}, {Text: "goodput > 5", Held: held}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		r := &run{writer: w}
		r.Experiment.Assert = []string{"failed == 0", "goodput > 5"}
		err = r.assertionError()
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, ErrAssertions) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSuspectErrorOfStrictRun(t *testing.T) {
	w, err := record.Create(t.TempDir(), record.Run{Name: "x", Plan: []record.Planned{{ID: 1}, {ID: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, state := range []string{record.Valid, record.Suspect} {
		tw, err := w.OpenTrial(i + 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := tw.Finish(record.Trial{State: record.TrialOK, Verdict: record.Verdict{State: state}}); err != nil {
			t.Fatal(err)
		}
	}
	r := &run{writer: w}
	if err := r.suspectError(); err != nil {
		t.Errorf("a run without --strict returns %v", err)
	}
	r.Strict = true
	if err := r.suspectError(); !errors.Is(err, ErrSuspect) || !strings.Contains(err.Error(), "trials are suspect: 2") {
		t.Errorf("a run with --strict returns %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// What fails the same way again is not worth another try, and no message suggests one.
func TestFailureAdvice(t *testing.T) {
	failed := func(message string) record.Trial { return record.Trial{State: record.TrialFailed, Error: message} }
	for name, tt := range map[string]struct {
		trials []record.Trial
		want   string
	}{
		"one": {[]record.Trial{failed("no such option maxmem")}, "fix the cause and, if"},
		"alike": {
			[]record.Trial{
				failed("node 10.1.0.3: no such option maxmem after 1.2s\nlog"),
				failed("node 10.2.0.7: no such option maxmem after 900ms"),
			},
			"all trials failed for the same reason",
		},
		"different":     {[]record.Trial{failed("no such option"), failed("no answer")}, "fix the cause and, if"},
		"some measured": {[]record.Trial{failed("x"), failed("x"), {State: record.TrialOK}}, "retry them with: skerry run --resume runs/x"},
	} {
		if got := failureAdvice(tt.trials, "runs/x"); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// A trial is repeated only for transient reasons, and only if nothing else is wrong.
func TestWorthRetry(t *testing.T) {
	suspect := func(kinds ...string) record.Trial {
		return record.Trial{State: record.TrialOK, Verdict: record.Verdict{State: record.Suspect, Kinds: kinds}}
	}
	for name, tt := range map[string]struct {
		trial record.Trial
		want  bool
	}{
		"late":       {suspect("emulator-late", "driver-late"), true},
		"stolen":     {suspect("steal"), true},
		"cores full": {suspect("driver-late", "host-cpu"), false},
		"cores saturated by other programs": {
			record.Trial{
				State: record.TrialOK, Concurrent: 3,
				Verdict: record.Verdict{State: record.Suspect, Kinds: []string{"driver-late", "host-cpu"}},
			},
			true,
		},
		"cores saturated by the trial": {
			record.Trial{State: record.TrialOK, Concurrent: 3, Verdict: record.Verdict{State: record.Suspect, Kinds: []string{"driver-cpu"}}},
			false,
		},
		"an event failed":    {suspect("steal", "event-failed"), false},
		"no evidence":        {suspect("no-evidence"), false},
		"of an older skerry": {suspect(), false},
		"of a newer one":     {suspect("steal", "another-kind"), false},
		"valid":              {record.Trial{State: record.TrialOK, Verdict: record.Verdict{State: record.Valid}}, false},
		"failed":             {record.Trial{State: record.TrialFailed}, false},
	} {
		if got := worthRetry(tt.trial); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
