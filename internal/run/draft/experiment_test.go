package draft

import (
	"errors"
	"strings"
	"testing"

	"skerry/internal/database/all"
	"skerry/internal/event"
	"skerry/internal/experiment"
)

// A draft gives a valid experiment with exactly the answers.
func TestEveryAnswerGivesValidFile(t *testing.T) {
	drafts := map[string]Experiment{"defaults": DefaultExperiment()}
	d := DefaultExperiment()
	d.Name, d.Topology, d.Client, d.Scales, d.Repetitions, d.Audit = "off", "mesh:5,rtt=40ms", "", []float64{0.2, 1}, 3, true
	d.Assert = []string{"lost_writes == 0", "read.p95 < 300ms"}
	drafts["a text with a meaning in YAML, axes, a preset with commas"] = d
	for _, o := range event.Offers() {
		d := DefaultExperiment()
		e := Event{Offer: o.ID}
		if o.Targets == "of" {
			e.Target = "Pune"
		}
		d.Events = []Event{e, {Offer: "cut", Target: "Melbourne~Sydney", At: "1s", For: "2s"}}
		drafts["event "+o.ID] = d
	}
	for name, d := range drafts {
		text, err := d.YAML()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		v := experiment.ValidateText(d.Name+".yaml", []byte(text), all.Databases())
		if !v.Valid {
			t.Errorf("%s: %v\n%s", name, v.Err(), text)
			continue
		}
		if want := max(1, len(d.Scales)) * d.Repetitions; v.Name != d.Name || v.Trials != want {
			t.Errorf("%s: %q with %d trials, want %q with %d", name, v.Name, v.Trials, d.Name, want)
		}
		if len(v.Notes) > 0 && strings.Contains(strings.Join(v.Notes, " "), "outlasts") {
			t.Errorf("%s: %v", name, v.Notes)
		}
	}
}

func TestInvalidAnswers(t *testing.T) {
	for want, e := range map[string]Event{`did you mean "kill"`: {Offer: "kil"}, "needs a node": {Offer: "isolate"}} {
		d := DefaultExperiment()
		d.Events = []Event{e}
		if _, err := d.YAML(); !errors.Is(err, ErrAnswer) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", e, err)
		}
	}
	d := DefaultExperiment()
	d.Time, d.Events = "soon", []Event{{Offer: "kill"}}
	if _, err := d.YAML(); !errors.Is(err, ErrAnswer) {
		t.Error(err)
	}
}

func TestParseEvent(t *testing.T) {
	got, err := ParseEvent("slow=Pune~Sydney,at=3s, for=2s,amount=4")
	if want := (Event{Offer: "slow", Target: "Pune~Sydney", At: "3s", For: "2s", Amount: "4"}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ParseEvent("kill,when=now"); !errors.Is(err, ErrAnswer) {
		t.Error(err)
	}
}

// Neither time nor a reachable operation count ends an endless trial, and keys are drawn as without a count.
func TestEndless(t *testing.T) {
	d := DefaultExperiment()
	d.Endless, d.Workload = true, "e"
	text, err := d.YAML()
	if err != nil {
		t.Fatal(err)
	}
	e, err := experiment.Parse("play.yaml", []byte(text), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if e.Stop.Time != 0 || e.Stop.String() != "until Ctrl-C" {
		t.Errorf("the trial ends after %s:\n%s", e.Stop, text)
	}
	if w, err := e.YCSBWorkload(e.Pools()[0]); err != nil || w.OperationCount >= experiment.Endless {
		t.Errorf("keys are drawn for %d operations, %v", w.OperationCount, err)
	}
}
