package flavor

import "math/rand/v2"

// Thief is a neighbour on the same processors, seeded: in each slot of time it either wants to
// run, and gets its half of them, or it does not.
type Thief struct {
	share float64
	seed  uint64
}

// NewThief takes a share of the time on average.
func NewThief(share float64, seed uint64) Thief { return Thief{share, seed} }

// In is the share that it takes in the k-th slot.
func (t Thief) In(k uint64) float64 {
	const half = 0.5
	switch {
	case t.share <= 0:
		return 0
	case t.share >= half:
		return t.share
	case rand.New(rand.NewPCG(t.seed, k)).Float64() < t.share/half:
		return half
	}
	return 0
}
