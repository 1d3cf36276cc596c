package event

import (
	"math"
	"time"
)

// goodputSample is what clients saw in one second of the measurement.
type goodputSample struct {
	t       int64
	goodput float64 // operations a second that ended ok
}

// A goodput is steady when the mean of steadyWindow seconds differs from that of the
// steadyWindow seconds before by steadyShare of that at most, and none of them was without
// operations.
const (
	steadyWindow = 5
	steadyShare  = 0.1
)

// steadiness keeps the last seconds that matter.
type steadiness struct {
	last []goodputSample
}

func (s *steadiness) add(x goodputSample) {
	s.last = append(s.last, x)
	if n := len(s.last); n > 2*steadyWindow {
		s.last = s.last[n-2*steadyWindow:]
	}
}

// steadySince tells whether the goodput is steady, in seconds that all began later than that.
func (s *steadiness) steadySince(at time.Duration) bool {
	if len(s.last) < 2*steadyWindow || time.Duration(s.last[0].t)*time.Second < at {
		return false
	}
	mean := func(seconds []goodputSample) (sum float64) {
		for _, x := range seconds {
			sum += x.goodput / steadyWindow
		}
		return sum
	}
	for _, x := range s.last {
		if x.goodput <= 0 {
			return false
		}
	}
	before, after := mean(s.last[:steadyWindow]), mean(s.last[steadyWindow:])
	return math.Abs(after-before) <= steadyShare*before
}
