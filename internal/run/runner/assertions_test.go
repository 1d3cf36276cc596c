package runner

import (
	"errors"
	"strings"
	"testing"

	"skerry/internal/record"
)

func TestAssertionsOfAllTrialsDecideHowARunEnds(t *testing.T) {
	for name, c := range map[string]struct {
		held []bool // of the two trials' second assertion
		want string
	}{
		"all hold":     {[]bool{true, true}, ""},
		"one does not": {[]bool{true, false}, "1 of 2 assertions did not hold: goodput > 5"},
		"twice is one": {[]bool{false, false}, "1 of 2 assertions did not hold: goodput > 5"},
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
			err = tw.Finish(record.Trial{State: record.TrialOK, Assertions: []record.Assertion{{Text: "failed == 0", Held: true}, {Text: "goodput > 5", Held: held}}})
			if err != nil {
				t.Fatal(err)
			}
		}
		r := &run{writer: w}
		r.Experiment.Assert = []string{"failed == 0", "goodput > 5"}
		err = r.assertions()
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, ErrAssertions) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStrictRunsEndWithSuspectTrials(t *testing.T) {
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
	if err := r.doubts(); err != nil {
		t.Errorf("a run that is not strict ends with %v", err)
	}
	r.Strict = true
	if err := r.doubts(); !errors.Is(err, ErrSuspect) || !strings.Contains(err.Error(), "trials are suspect: 2") {
		t.Errorf("a strict run ends with %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
