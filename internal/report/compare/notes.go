package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"skerry/internal/evidence/stats"
)

const significantMachineP = 0.05

func (r *Report) noteMachines() {
	for _, p := range r.Pairs {
		if note := p.machineNote(r.Seed); note != "" {
			r.Notes = append(r.Notes, note)
		}
	}
}

func (p Pair) machineNote(seed uint64) string {
	a, b := p.A.machineNames(), p.B.machineNames()
	if len(a) == 0 || len(b) == 0 {
		return ""
	}
	values, crossed := p.machineSamples()
	if !crossed {
		return fmt.Sprintf("%s and %s ran on different machines (%s; %s): the difference may be a difference between machines", p.A, p.B,
			joinNames(a), joinNames(b))
	}
	f, ok := stats.FitMachineFactor(values, seed)
	if !ok || f.P >= significantMachineP || f.Machines <= f.Cells {
		return ""
	}
	return fmt.Sprintf("machines explain more of the goodput of %s and %s than the cells: machines differ by %s (standard "+
		"deviation, p = %.3f), cells by %s; corrected for machines, B's goodput is %s of A's",
		p.A, p.B, formatPercent(math.Expm1(f.Machines)), f.P, formatPercent(math.Expm1(f.Cells)),
		formatPercent(math.Exp(f.CellMeans[1]-f.CellMeans[0])))
}

// machineSamples returns the logarithms of goodput by cell and machine. crossed is set if the sides
// share a machine.
func (p Pair) machineSamples() (values []stats.Observation, crossed bool) {
	number, sides := map[string]int{}, map[string]int{} // a bit a side
	for i, s := range []Side{p.A, p.B} {
		for _, t := range s.trials {
			if t.Machine == nil {
				continue
			}
			name := t.Machine.Name
			if _, known := number[name]; !known {
				number[name] = len(number)
			}
			sides[name] |= 1 << i
			crossed = crossed || sides[name] == 3
			if t.Goodput > 0 {
				values = append(values, stats.Observation{Cell: i, Machine: number[name], Value: math.Log(t.Goodput)})
			}
		}
	}
	return values, crossed
}

func (s Side) machineNames() map[string]bool {
	names := map[string]bool{}
	for _, t := range s.trials {
		if t.Machine != nil {
			names[t.Machine.Name] = true
		}
	}
	return names
}

func joinNames(of map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(of)), ", ") }

// noteSettings adds a note to every pair whose nodes had different TCP settings: the congestion
// control alone can explain a difference.
func (r *Report) noteSettings() {
	for _, p := range r.Pairs {
		if note := p.settingsNote(); note != "" {
			r.Notes = append(r.Notes, note)
		}
	}
}

func (p Pair) settingsNote() string {
	a, b := p.A.tcpSettings(), p.B.tcpSettings()
	switch {
	case len(a) == 0 && len(b) == 0:
		return ""
	case len(a) == 0:
		return unrecordedNote(p.A, p.B)
	case len(b) == 0:
		return unrecordedNote(p.B, p.A)
	}
	names := maps.Clone(a)
	maps.Copy(names, b)
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if x, y := joinValues(a[name]), joinValues(b[name]); x != y {
			differ = append(differ, fmt.Sprintf("%s is %s in A and %s in B", name, x, y))
		}
	}
	if differ == nil {
		return ""
	}
	return fmt.Sprintf("kernel settings of nodes differ: %s (A is %s; B is %s)", strings.Join(differ, "; "), p.A, p.B)
}

func unrecordedNote(missing, there Side) string {
	return fmt.Sprintf("kernel settings of nodes (TCP congestion control and buffers) were recorded for %s but not for %s: they "+
		"may differ", there, missing)
}

func (s Side) tcpSettings() map[string]map[string]bool {
	of := map[string]map[string]bool{}
	for _, t := range s.trials {
		if t.Machine == nil {
			continue
		}
		for name, value := range t.Machine.Settings {
			if !strings.HasPrefix(name, "net.ipv4.tcp_") && !strings.HasPrefix(name, "net.core.") {
				continue // settings that follow from the topology, such as forwarding
			}
			if of[name] == nil {
				of[name] = map[string]bool{}
			}
			of[name][value] = true
		}
	}
	return of
}

func joinValues(of map[string]bool) string {
	if len(of) == 0 {
		return "not recorded"
	}
	return strings.Join(slices.Sorted(maps.Keys(of)), " or ")
}
