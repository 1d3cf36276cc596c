package trial

import (
	"testing"
	"time"

	"skerry/internal/evidence/verdict"
	"skerry/internal/lab"
)

func TestOtherUseExcludesRun(t *testing.T) {
	mine, beside := new(lab.Lab), new(lab.Lab)
	at := time.Unix(1000, 0)
	before := cpuReading{
		at: at, processes: time.Hour, cores: 2, self: time.Second,
		labs: map[*lab.Lab]time.Duration{mine: time.Minute, beside: 0},
	}
	after := cpuReading{at: at.Add(10 * time.Second), processes: time.Hour + 16*time.Second, cores: 2, self: 2 * time.Second,
		labs: map[*lab.Lab]time.Duration{mine: time.Minute + 4*time.Second, beside: 5 * time.Second}}
	for name, tt := range map[string]struct {
		change  func(before, after *cpuReading)
		want    float64
		unknown bool
		known   bool
	}{
		"a concurrent trial": {func(_, _ *cpuReading) {}, 0.6, false, true},
		"alone": {func(b, a *cpuReading) {
			b.labs, a.labs = map[*lab.Lab]time.Duration{mine: 0}, map[*lab.Lab]time.Duration{mine: 9 * time.Second}
		}, 0.6, false, true},
		"no other programs":      {func(_, a *cpuReading) { a.processes = time.Hour + 9*time.Second }, 0, false, true}, // rounding
		"other machines":         {func(b, _ *cpuReading) { b.unknown = "the lab is on other machines" }, 0, true, false},
		"no control groups":      {func(_, a *cpuReading) { a.unknown = "no control group" }, 0, true, false},
		"a lab that was removed": {func(_, a *cpuReading) { a.labs = map[*lab.Lab]time.Duration{mine: time.Hour} }, 0, true, false},
		"too short to report":    {func(_, a *cpuReading) { a.at = at.Add(time.Second) }, 0, false, false},
		"no counters":            {func(b, a *cpuReading) { *b, *a = cpuReading{}, cpuReading{} }, 0, false, false},
	} {
		b, a := before, after
		tt.change(&b, &a)
		p := otherUse(b, a)
		use, known := p.Figure()
		_, unknown := p.Unknown()
		if known != tt.known || unknown != tt.unknown || use.Cores < tt.want-1e-9 || use.Cores > tt.want+1e-9 || known && use.Of != 2 {
			t.Errorf("%s: %+v, known %v, unknown %v; want %g", name, use, known, unknown, tt.want)
		}
	}
	// Unknown facts of a machine make no trial suspect.
	if v := verdict.Judge(verdict.Evidence{Others: verdict.Unknown[verdict.Use]("why")}, verdict.Limits{}); len(v.Notes) != 1 {
		t.Errorf("notes %q", v.Notes)
	}
}

func TestLabsOfPhases(t *testing.T) {
	one, two := new(lab.Lab), new(lab.Lab)
	var none *PhaseScheduler
	none.addLab(one)
	none.removeLab(one)
	if all := none.labsWith(one); len(all) != 1 {
		t.Errorf("a run of single trials: %d labs", len(all))
	}
	turns := NewPhaseScheduler()
	turns.addLab(one)
	turns.addLab(two)
	turns.addLab(two) // a cluster that the next trial reuses
	if all := turns.labsWith(two); len(all) != 2 || all[0] != two || all[1] != one {
		t.Errorf("%v", all)
	}
	turns.removeLab(one)
	if all := turns.labsWith(two); len(all) != 1 {
		t.Errorf("%d labs after one went down", len(all))
	}
}
