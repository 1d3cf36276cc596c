package trial

import (
	"testing"
	"time"

	"skerry/internal/evidence/verdict"
	"skerry/internal/lab"
)

func TestOthersAreWhatIsNoneOfTheRuns(t *testing.T) {
	mine, beside := new(lab.Lab), new(lab.Lab)
	at := time.Unix(1000, 0)
	before := cpuUse{at: at, processes: time.Hour, cores: 2, self: time.Second, labs: map[*lab.Lab]time.Duration{mine: time.Minute, beside: 0}}
	after := cpuUse{at: at.Add(10 * time.Second), processes: time.Hour + 16*time.Second, cores: 2, self: 2 * time.Second,
		labs: map[*lab.Lab]time.Duration{mine: time.Minute + 4*time.Second, beside: 5 * time.Second}}
	for name, tt := range map[string]struct {
		change  func(before, after *cpuUse)
		want    float64
		unknown bool
		known   bool
	}{
		"a trial beside": {func(_, _ *cpuUse) {}, 0.6, false, true},
		"alone": {func(b, a *cpuUse) {
			b.labs, a.labs = map[*lab.Lab]time.Duration{mine: 0}, map[*lab.Lab]time.Duration{mine: 9 * time.Second}
		}, 0.6, false, true},
		"nothing else":        {func(_, a *cpuUse) { a.processes = time.Hour + 9*time.Second }, 0, false, true}, // by what counters round
		"other machines":      {func(b, _ *cpuUse) { b.unknown = "the lab is on other machines" }, 0, true, false},
		"no control groups":   {func(_, a *cpuUse) { a.unknown = "no control group" }, 0, true, false},
		"a lab that went":     {func(_, a *cpuUse) { a.labs = map[*lab.Lab]time.Duration{mine: time.Hour} }, 0, true, false},
		"too short to tell":   {func(_, a *cpuUse) { a.at = at.Add(time.Second) }, 0, false, false},
		"nothing was counted": {func(b, a *cpuUse) { *b, *a = cpuUse{}, cpuUse{} }, 0, false, false},
	} {
		b, a := before, after
		tt.change(&b, &a)
		p := others(b, a)
		use, known := p.Figure()
		_, unknown := p.Unknown()
		if known != tt.known || unknown != tt.unknown || use.Cores < tt.want-1e-9 || use.Cores > tt.want+1e-9 || known && use.Of != 2 {
			t.Errorf("%s: %+v, known %v, unknown %v; want %g", name, use, known, unknown, tt.want)
		}
	}
	// What a machine cannot tell makes no trial suspect.
	if v := verdict.Judge(verdict.Evidence{Others: verdict.Unknown[verdict.Use]("why")}, verdict.Limits{}); len(v.Notes) != 1 {
		t.Errorf("notes %q", v.Notes)
	}
}

func TestLabsOfTurns(t *testing.T) {
	one, two := new(lab.Lab), new(lab.Lab)
	var none *Turns
	none.add(one)
	none.remove(one)
	if all := none.with(one); len(all) != 1 {
		t.Errorf("a run of single trials: %d labs", len(all))
	}
	turns := NewTurns()
	turns.add(one)
	turns.add(two)
	turns.add(two) // a cluster that the next trial goes on with
	if all := turns.with(two); len(all) != 2 || all[0] != two || all[1] != one {
		t.Errorf("%v", all)
	}
	turns.remove(one)
	if all := turns.with(two); len(all) != 1 {
		t.Errorf("%d labs after one went down", len(all))
	}
}
