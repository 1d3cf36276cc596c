package event

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Selection takes some of many, each time that an event happens.
type Selection struct {
	// Choose is which: all of them; the next ones in the order of the list, until it is
	// at its end; or some at random.
	Choose string `yaml:"choose" json:"choose" jsonschema:"default=all,enum=all,enum=next,enum=random"`
	// Count is how many, for next and random.
	Count int `yaml:"count" json:"count" jsonschema:"default=1,minimum=1"`
}

// pick returns the places of those taken of n, in order. busy ones are not taken at
// random. Nil is when none is left.
func (c Selection) pick(n, turn int, busy func(int) bool, r *rand.Rand) []int {
	switch c.Choose {
	case "next":
		var taken []int
		for i := turn * c.Count; i < min(n, (turn+1)*c.Count); i++ {
			taken = append(taken, i)
		}
		return taken
	case "random":
		// Drawn before the busy ones are left out, so that what one event draws does
		// not depend on how long another lasts.
		order := r.Perm(n)
		order = slices.DeleteFunc(order, busy)
		order = order[:min(c.Count, len(order))]
		slices.Sort(order)
		return order
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// selectsAll tells whether all are taken, each time.
func (c Selection) selectsAll() bool { return c.Choose == "all" }

// turnLimit is how often next can take; 0 is without end.
func (c Selection) turnLimit(n int) int {
	if c.Choose != "next" {
		return 0
	}
	return (n + c.Count - 1) / c.Count
}

// joinNames writes names for a message: all of a few, the number of many.
func joinNames(names []string, what string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%d %s", len(names), what)
	}
	return strings.Join(names, ", ")
}
