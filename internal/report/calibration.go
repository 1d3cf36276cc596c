package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"skerry/internal/evidence/stats"
	"skerry/internal/record"
)

// apartBy is the share by which a machine's calibration is told to be off the others'.
const apartBy = 0.1

// place is a machine that trials were measured on.
type place struct {
	record.Machine
	trials int
	// Medians over its calibrations, 0 without one.
	driver, loopback float64
}

// places are the machines of a run whose trials tell, by name.
func (m *model) places() (all []place) {
	of := map[string][]record.TrialMachine{}
	for _, t := range m.dir.Summary.Trials {
		if t.Machine != nil {
			of[t.Machine.Name] = append(of[t.Machine.Name], *t.Machine)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		p := place{Machine: of[name][0].Machine, trials: len(of[name])}
		p.driver = calibrated(of[name], func(c record.Calibration) float64 { return c.DriverOps })
		p.loopback = calibrated(of[name], func(c record.Calibration) float64 { return c.LoopbackP50US })
		all = append(all, p)
	}
	return all
}

// calibrated is the median of a figure, 0 where there is none.
func calibrated(at []record.TrialMachine, of func(record.Calibration) float64) float64 {
	var values []float64
	for _, x := range at {
		if x.Calibration != nil {
			values = append(values, of(*x.Calibration))
		}
	}
	return stats.Median(values)
}

// middle is the median, of an even number the lower of the two in the middle: a machine's own value, so that of two machines
// one is told against the other and not both against what lies between them.
func middle(values []float64) float64 { return slices.Sorted(slices.Values(values))[(len(values)-1)/2] }

// machineFacts name the machines of a run that was measured on several, with what they are and do.
func (m *model) machineFacts() (facts []fact) {
	all := m.places()
	if len(all) < 2 {
		return nil
	}
	for _, p := range all {
		parts := []string{plural(p.trials, "trial"), fmt.Sprintf("%s, %s", cmp.Or(p.CPU, "processor unknown"), plural(p.Cores, "core")), p.Kernel}
		if p.driver > 0 {
			parts = append(parts, fmt.Sprintf("calibration: %.0f operations of the driver per processor second, %.1f µs over loopback and back", p.driver, p.loopback))
		}
		facts = append(facts, fact{"Machine " + p.Name, strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")})
	}
	return facts
}

// calibrationFinding names the machines whose calibration is off that of the middle one.
func (m *model) calibrationFinding() (told []string) {
	var drivers, loopbacks []float64
	var all []place
	for _, p := range m.places() {
		if p.driver > 0 && p.loopback > 0 {
			all = append(all, p)
			drivers, loopbacks = append(drivers, p.driver), append(loopbacks, p.loopback)
		}
	}
	if len(all) < 2 {
		return nil
	}
	driver, loopback := middle(drivers), middle(loopbacks)
	for _, p := range all {
		var off []string
		if share := p.driver/driver - 1; math.Abs(share) >= apartBy {
			off = append(off, fmt.Sprintf("%+.0f %% operations of the driver per processor second", 100*share))
		}
		if share := p.loopback/loopback - 1; math.Abs(share) >= apartBy {
			off = append(off, fmt.Sprintf("%+.0f %% time over loopback", 100*share))
		}
		if len(off) > 0 {
			told = append(told, fmt.Sprintf("%s (%s)", p.Name, strings.Join(off, ", ")))
		}
	}
	if len(told) == 0 {
		return nil
	}
	return []string{"By their calibration machines differ from the middle one: " + strings.Join(told, "; ") + "."}
}
