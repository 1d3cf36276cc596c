package report

import (
	"fmt"
	"strings"
	"testing"

	"skerry/internal/record"
)

func TestCalibrations(t *testing.T) {
	run := func(driver ...float64) *model {
		m := &model{dir: &record.Dir{}}
		for i, d := range driver {
			for k := range 3 {
				c := record.Calibration{DriverOps: d * (1 + float64(k)/100), LoopbackP50US: 20, LoopbackP99US: 60}
				m.dir.Summary.Trials = append(m.dir.Summary.Trials, record.Trial{Machine: &record.TrialMachine{
					Machine: record.Machine{Name: fmt.Sprintf("h%d", i+1), CPU: "X", Cores: 2, Kernel: "6.1"}, Calibration: &c}})
			}
		}
		return m
	}
	if m := run(1000); m.calibrationFinding() != nil || m.machineFacts() != nil {
		t.Error("a single machine is compared with others")
	}
	if got := strings.Join(run(1000, 1150).calibrationFinding(), ""); !strings.Contains(got, "h2 (+15 % driver operations") ||
		strings.Contains(got, "h1") {
		t.Errorf("table of two machines: %q", got)
	}
	if got := run(1000, 1020, 1010).calibrationFinding(); got != nil {
		t.Errorf("equal machines: %v", got)
	}
	m := run(1000, 1010, 600)
	if got := strings.Join(m.calibrationFinding(), ""); !strings.Contains(got, "h3 (-40 % driver operations") || strings.Contains(got, "h1") {
		t.Errorf("%q", got)
	}
	facts := m.machineFacts()
	if len(facts) != 3 || facts[2].Name != "Machine h3" ||
		facts[2].Value != "3 trials; X, 2 cores; 6.1; calibration: 606 driver operations per CPU second, 20.0 µs loopback round trip" {
		t.Errorf("%q", facts)
	}
}

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
		want  string // "" for no finding
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
