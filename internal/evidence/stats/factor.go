package stats

import (
	"math"
	"math/rand/v2"
)

// Observation is a value of a cell, measured on one of several machines. Cell and Machine are small numbers from 0.
type Observation struct {
	Cell, Machine int
	Value         float64
}

// Factor is how much of a variance machines explain. The model is additive, so take logarithms of values that machines
// change by a factor:
//
//	value = cell + machine + rest,  machine and rest random
//
// Cells and machines are fitted alternately until they converge, which also holds if machines did not run the same cells.
// The variance of a factor's effects follows from the method of moments: the variance of their means, without the
// variance that the rest alone gives to means of so many values.
type Factor struct {
	Machines, Cells, Rest float64 // standard deviations
	// P is how often a random assignment of machines within each cell explains as much.
	P float64
	// CellMeans are the means of the cells on equal machines, up to a constant.
	CellMeans []float64
}

// factorDeals give a P of 0.05 to within 0.007.
const factorDeals = 1000

// FitMachineFactor returns false if machines cannot be separated from cells: with one machine, if no cell ran on two
// machines, or without degrees of freedom for the rest.
func FitMachineFactor(values []Observation, seed uint64) (Factor, bool) {
	return fitMachineFactor(values, seed, factorDeals)
}

func fitMachineFactor(values []Observation, seed uint64, deals int) (Factor, bool) {
	cells, machines := 0, 0
	at := map[int]int{}
	crossed := false
	for _, v := range values {
		cells, machines = max(cells, v.Cell+1), max(machines, v.Machine+1)
		if on, known := at[v.Cell]; known && on != v.Machine {
			crossed = true
		}
		at[v.Cell] = v.Machine
	}
	free := len(values) - cells - machines + 1
	if !crossed || free < 1 {
		return Factor{}, false
	}
	fit := fitFactors(values, cells, machines)
	rest := fit.left / float64(free)
	f := Factor{Rest: math.Sqrt(rest), Machines: fit.machines.deviation(rest), Cells: fit.cells.deviation(rest), CellMeans: fit.cells.mean}

	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	dealt, asGood := append([]Observation(nil), values...), 1 // includes the real assignment
	for range deals {
		dealWithin(dealt, cells, r)
		if fitFactors(dealt, cells, machines).left <= fit.left*(1+ties) {
			asGood++
		}
	}
	f.P = float64(asGood) / float64(deals+1)
	return f, true
}

// dealWithin permutes the machines of each cell's values.
func dealWithin(values []Observation, cells int, r *rand.Rand) {
	of := make([][]int, cells)
	for i, v := range values {
		of[v.Cell] = append(of[v.Cell], i)
	}
	for _, is := range of {
		r.Shuffle(len(is), func(a, b int) {
			values[is[a]].Machine, values[is[b]].Machine = values[is[b]].Machine, values[is[a]].Machine
		})
	}
}

type effects struct{ mean, n []float64 }

type factors struct {
	cells, machines effects
	left            float64 // unexplained sum of squares
}

// fitRounds are enough for nearly balanced designs; a balanced design needs two.
const fitRounds = 50

func fitFactors(values []Observation, cells, machines int) factors {
	f := factors{cells: effects{make([]float64, cells), make([]float64, cells)},
		machines: effects{make([]float64, machines), make([]float64, machines)}}
	for _, v := range values {
		f.cells.n[v.Cell]++
		f.machines.n[v.Machine]++
	}
	for range fitRounds {
		before := append([]float64(nil), f.machines.mean...)
		f.cells.fit(values, func(v Observation) (int, float64) { return v.Cell, v.Value - f.machines.mean[v.Machine] })
		f.machines.fit(values, func(v Observation) (int, float64) { return v.Machine, v.Value - f.cells.mean[v.Cell] })
		moved := 0.0
		for i, m := range f.machines.mean {
			moved = max(moved, math.Abs(m-before[i]))
		}
		if moved < ties {
			break
		}
	}
	for _, v := range values {
		d := v.Value - f.cells.mean[v.Cell] - f.machines.mean[v.Machine]
		f.left += d * d
	}
	return f
}

func (e effects) fit(values []Observation, part func(Observation) (int, float64)) {
	clear(e.mean)
	for _, v := range values {
		i, x := part(v)
		e.mean[i] += x / e.n[i]
	}
}

// deviation is the standard deviation of the effects without the part that the variance of the rest causes.
func (e effects) deviation(rest float64) float64 {
	var mean, used, noise, squares float64
	for i, n := range e.n {
		if n > 0 {
			used++
			mean += e.mean[i]
			noise += rest / n
		}
	}
	if used < 2 {
		return 0
	}
	mean, noise = mean/used, noise/used
	for i, n := range e.n {
		if n > 0 {
			squares += (e.mean[i] - mean) * (e.mean[i] - mean)
		}
	}
	return math.Sqrt(max(0, squares/(used-1)-noise))
}
