package dataplane

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestHeapReturnsEarliest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var h heap
	directions := make([]*direction, 100)
	for i := range directions {
		directions[i] = &direction{place: -1}
	}
	for step := range 20_000 {
		d := directions[random.IntN(len(directions))]
		if random.IntN(3) == 0 {
			h.remove(d)
		} else {
			d.due = random.Int64N(1000)
			h.update(d)
		}
		var within []int64
		for i, d := range h {
			if d.place != i {
				t.Fatalf("step %d: the direction at position %d has stored position %d", step, i, d.place)
			}
			within = append(within, d.due)
		}
		if len(h) > 0 && h[0].due != slices.Min(within) {
			t.Fatalf("step %d: the top is %d, want the minimum %d", step, h[0].due, slices.Min(within))
		}
	}
}
