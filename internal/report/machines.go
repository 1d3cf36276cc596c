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

// calibrationTolerance is the relative deviation from the median calibration that is reported.
const calibrationTolerance = 0.1

type calibratedMachine struct {
	record.Machine
	trials int
	// Medians over all calibrations, 0 if there is none.
	driver, loopback float64
}

func (m *model) calibratedMachines() (all []calibratedMachine) {
	of := map[string][]record.TrialMachine{}
	for _, t := range m.dir.Summary.Trials {
		if t.Machine != nil {
			of[t.Machine.Name] = append(of[t.Machine.Name], *t.Machine)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		p := calibratedMachine{Machine: of[name][0].Machine, trials: len(of[name])}
		p.driver = medianCalibration(of[name], func(c record.Calibration) float64 { return c.DriverOps })
		p.loopback = medianCalibration(of[name], func(c record.Calibration) float64 { return c.LoopbackP50US })
		all = append(all, p)
	}
	return all
}

func medianCalibration(at []record.TrialMachine, of func(record.Calibration) float64) float64 {
	var values []float64
	for _, x := range at {
		if x.Calibration != nil {
			values = append(values, of(*x.Calibration))
		}
	}
	return stats.Median(values)
}

// lowerMedian returns the lower median, which is always a measured value. With two machines, one is
// compared with the other, not both with their mean.
func lowerMedian(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[(len(values)-1)/2]
}

func (m *model) machineFacts() (facts []Fact) {
	all := m.calibratedMachines()
	if len(all) < 2 {
		return nil
	}
	for _, p := range all {
		parts := []string{Plural(p.trials, "trial"), fmt.Sprintf("%s, %s", cmp.Or(p.CPU, "processor unknown"), Plural(p.Cores, "core")), p.Kernel}
		if p.driver > 0 {
			parts = append(parts, fmt.Sprintf("calibration: %.0f driver operations per CPU second, %.1f µs loopback round trip", p.driver,
				p.loopback))
		}
		facts = append(facts, Fact{"Machine " + p.Name, strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")})
	}
	return facts
}

func (m *model) calibrationFinding() (deviations []string) {
	var drivers, loopbacks []float64
	var all []calibratedMachine
	for _, p := range m.calibratedMachines() {
		if p.driver > 0 && p.loopback > 0 {
			all = append(all, p)
			drivers, loopbacks = append(drivers, p.driver), append(loopbacks, p.loopback)
		}
	}
	if len(all) < 2 {
		return nil
	}
	driver, loopback := lowerMedian(drivers), lowerMedian(loopbacks)
	for _, p := range all {
		var off []string
		if share := p.driver/driver - 1; math.Abs(share) >= calibrationTolerance {
			off = append(off, fmt.Sprintf("%+.0f %% driver operations per CPU second", 100*share))
		}
		if share := p.loopback/loopback - 1; math.Abs(share) >= calibrationTolerance {
			off = append(off, fmt.Sprintf("%+.0f %% loopback round trip", 100*share))
		}
		if len(off) > 0 {
			deviations = append(deviations, fmt.Sprintf("%s (%s)", p.Name, strings.Join(off, ", ")))
		}
	}
	if len(deviations) == 0 {
		return nil
	}
	return []string{"Calibration deviates from the median machine: " + strings.Join(deviations, "; ") + "."}
}

const significantP = 0.05

func (m *model) machinesFinding() []string {
	values, machines := m.machineSamples()
	if machines < 2 {
		return nil
	}
	f, ok := stats.FitMachineFactor(values, m.dir.Run.Seed)
	if !ok {
		return []string{fmt.Sprintf("Trials ran on %d machines, but no cell ran on several of them: a difference between cells may be "+
			"a difference between machines.", machines)}
	}
	if f.P >= significantP {
		return nil
	}
	share := func(deviation float64) string { return fmt.Sprintf("%.0f %%", 100*math.Expm1(deviation)) }
	said := fmt.Sprintf("goodput differs between the %d machines by %s (standard deviation, p = %.3f), between cells by %s", machines,
		share(f.Machines), f.P, share(f.Cells))
	if f.Machines > f.Cells {
		return []string{"Caution: machines explain more of the variation than cells: " + said + "."}
	}
	return []string{"Machines differ: " + said + "."}
}

// machineSamples returns the logarithms of goodput by cell and machine, and the number of machines.
func (m *model) machineSamples() (values []stats.Observation, machines int) {
	number := map[string]int{}
	for i, c := range m.cells {
		for _, t := range c.used {
			if t.Machine == nil || t.Goodput <= 0 {
				continue
			}
			if _, known := number[t.Machine.Name]; !known {
				number[t.Machine.Name] = len(number)
			}
			values = append(values, stats.Observation{Cell: i, Machine: number[t.Machine.Name], Value: math.Log(t.Goodput)})
		}
	}
	return values, len(number)
}
