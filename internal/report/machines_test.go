package report

import (
	"strings"
	"testing"

	"skerry/internal/record"
)

func TestMachinesFinding(t *testing.T) {
	on := func(name string, goodput float64) record.Trial {
		return record.Trial{Goodput: goodput, Machine: &record.TrialMachine{Machine: record.Machine{Name: name}}}
	}
	grid := func(slow float64) *model {
		m := &model{dir: &record.Dir{}}
		for i := range 4 {
			c := &cell{}
			for k := range 6 {
				noise := 1 + 0.01*float64((k*7+i*3)%5)
				g, name := 1000*(1+0.05*float64(i))*noise, "fast"
				if (k+i)%2 == 0 {
					g, name = g*slow, "slow"
				}
				c.used = append(c.used, on(name, g))
			}
			m.cells = append(m.cells, c)
		}
		return m
	}
	for name, tt := range map[string]struct {
		model *model
		want  string // "" for nothing said
	}{
		"machines alike":      {grid(1), ""},
		"one is half as fast": {grid(0.5), "machines explain more of the variation than cells"},
		"one machine":         {&model{dir: &record.Dir{}, cells: []*cell{{used: []record.Trial{on("a", 1), on("a", 2)}}}}, ""},
		"each cell on its own": {&model{dir: &record.Dir{},
			cells: []*cell{{used: []record.Trial{on("a", 1)}}, {used: []record.Trial{on("b", 2)}}}}, "may be a difference between machines"},
	} {
		got := strings.Join(tt.model.machinesFinding(), "; ")
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
