package dispatch

import (
	"maps"
	"slices"
)

// barren tells the machines from which no results come though others measure: one whose disk is full ends each task within
// a second, and would take in all that wait while others do one.
type barren struct {
	inARow map[string]int // tasks that ended by themselves without results, by machine
	fit    bool           // some machine has measured
}

// barrenAfter is how many such tasks make a machine barren: one may have itself to blame.
const barrenAfter = 2

func (b *barren) ended(where string, measured bool) {
	if where == "" {
		return
	}
	if measured {
		b.fit = true
		delete(b.inARow, where)
		return
	}
	if b.inARow == nil {
		b.inARow = map[string]int{}
	}
	b.inARow[where]++
}

// nodes are those that get no more tasks.
func (b *barren) nodes() []string {
	if !b.fit {
		return nil
	}
	all := slices.Sorted(maps.Keys(b.inARow))
	return slices.DeleteFunc(all, func(where string) bool { return b.inARow[where] < barrenAfter })
}
