package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// generate returns values of a grid of cells on machines whose effects have these standard deviations.
func generate(cells, machines, repetitions int, ofCell, ofMachine, rest float64, seed uint64) []Observation {
	r := rand.New(rand.NewPCG(seed, 1))
	effect := func(n int, sd float64) []float64 {
		all := make([]float64, n)
		for i := range all {
			all[i] = r.NormFloat64() * sd
		}
		return all
	}
	c, m := effect(cells, ofCell), effect(machines, ofMachine)
	var values []Observation
	for i := range cells {
		for k := range repetitions {
			on := (i + k) % machines
			values = append(values, Observation{i, on, 5 + c[i] + m[on] + r.NormFloat64()*rest})
		}
	}
	return values
}

// The components of generated data are estimated correctly on average over many grids, since one grid has few machines.
func TestFitMachineFactor(t *testing.T) {
	const grids = 100
	for _, c := range []struct{ cell, machine, rest float64 }{{0.5, 0.2, 0.05}, {0.1, 0.4, 0.1}, {0.3, 0, 0.1}} {
		var cell, machine, rest float64
		for seed := range uint64(grids) {
			f, ok := fitMachineFactor(generate(12, 6, 6, c.cell, c.machine, c.rest, seed), seed, 0)
			if !ok {
				t.Fatal("machines and cells are confounded")
			}
			cell, machine, rest = cell+f.Cells*f.Cells/grids, machine+f.Machines*f.Machines/grids, rest+f.Rest*f.Rest/grids
		}
		for name, v := range map[string][2]float64{"cells": {cell, c.cell}, "machines": {machine, c.machine}, "rest": {rest, c.rest}} {
			if got, want := math.Sqrt(v[0]), v[1]; math.Abs(got-want) > 0.15*want+0.02 {
				t.Errorf("%+v: %s %.3f, want %.3f", c, name, got, want)
			}
		}
	}
}

// Equal machines are reported as different in 5 % of grids, different ones in nearly all.
func TestMachineFactorP(t *testing.T) {
	const grids = 200
	detected := func(machine float64) (n int) {
		for seed := range uint64(grids) {
			if f, _ := fitMachineFactor(generate(4, 3, 6, 0.3, machine, 0.1, seed), seed, 99); f.P <= 0.05 {
				n++
			}
		}
		return n
	}
	if n := detected(0); n > 20 {
		t.Errorf("equal machines are reported as different in %d of %d grids", n, grids)
	}
	if n := detected(0.4); n < grids*9/10 {
		t.Errorf("different machines are reported as different in %d of %d grids", n, grids)
	}
}

func TestConfoundedMachines(t *testing.T) {
	for name, values := range map[string][]Observation{
		"nothing":                            nil,
		"one machine":                        {{0, 0, 1}, {0, 0, 2}, {1, 0, 3}, {1, 0, 4}},
		"a machine for a cell":               {{0, 0, 1}, {0, 0, 2}, {1, 1, 3}, {1, 1, 4}},
		"no degrees of freedom for the rest": {{0, 0, 1}, {0, 1, 2}},
	} {
		if f, ok := FitMachineFactor(values, 1); ok {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
