package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"skerry/internal/evidence/stats"
)

// tellAt is the P below which machines are said to make a difference.
const tellAt = 0.05

// machines adds a note on every pair whose difference may be one of machines: where the sides share none no
// figure can tell, and where they do the goodput tells.
func (r *Report) machines() {
	for _, p := range r.Pairs {
		if note := p.machines(r.Seed); note != "" {
			r.Notes = append(r.Notes, note)
		}
	}
}

func (p Pair) machines(seed uint64) string {
	a, b := p.A.machines(), p.B.machines()
	if len(a) == 0 || len(b) == 0 {
		return ""
	}
	values, crossed := p.placed()
	if !crossed {
		return fmt.Sprintf("%s and %s were measured on different machines (%s; %s): their difference may be one of machines", p.A, p.B, names(a), names(b))
	}
	f, ok := stats.MachineFactor(values, seed)
	if !ok || f.P >= tellAt || f.Machines <= f.Cells {
		return ""
	}
	return fmt.Sprintf("machines explain more of the goodput than cells do, of %s and %s: they differ by %s (standard deviation, p = %.3f), the cells by %s; with machines taken out B's goodput is %s of A's",
		p.A, p.B, percent(math.Expm1(f.Machines)), f.P, percent(math.Expm1(f.Cells)), percent(math.Exp(f.CellMeans[1]-f.CellMeans[0])))
}

// placed are the logarithms of both sides' goodput by machine; crossed says that they share one.
func (p Pair) placed() (values []stats.Placed, crossed bool) {
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
				values = append(values, stats.Placed{Cell: i, Machine: number[name], Value: math.Log(t.Goodput)})
			}
		}
	}
	return values, crossed
}

// machines are the names of those that the trials were measured on, where they tell.
func (s Side) machines() map[string]bool {
	names := map[string]bool{}
	for _, t := range s.trials {
		if t.Machine != nil {
			names[t.Machine.Name] = true
		}
	}
	return names
}

func names(of map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(of)), ", ") }
