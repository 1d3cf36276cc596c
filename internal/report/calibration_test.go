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
		t.Error("one machine is compared with others")
	}
	if got := strings.Join(run(1000, 1150).calibrationFinding(), ""); !strings.Contains(got, "h2 (+15 % driver operations") ||
		strings.Contains(got, "h1") {
		t.Errorf("of two machines: %q", got)
	}
	if got := run(1000, 1020, 1010).calibrationFinding(); got != nil {
		t.Errorf("machines that are alike: %v", got)
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
