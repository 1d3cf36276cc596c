package shaper

import "math"

// noise is a continuous random process whose values are standard normal at every moment.
//
// Knots z(k) at the times k * period are independent and normal. Between two knots
//
//	x(t) = cos(a) z(k) + sin(a) z(k+1),  a = pi/2 * (t/period - k)
//
// is normal with variance cos² + sin² = 1. x is continuous, its slope has the standard deviation
// pi/2 / period, and values two periods apart are independent. Drawing an independent delay for each
// packet would make the mean delay depend on the packet rate: packets may not overtake each other, so
// the largest of several close delays would hold for all of them.
type noise struct {
	seed   uint64
	period int64 // of the knots below
	knot   int64
	before float64 // z(knot)
	after  float64 // z(knot+1)
}

// at returns the value at a time. It depends only on seed, period and time.
func (n *noise) at(time, period int64) float64 {
	knot := time / period
	if period != n.period || knot != n.knot {
		n.period, n.knot = period, knot
		n.before, n.after = n.draw(knot), n.draw(knot+1)
	}
	sin, cos := math.Sincos(math.Pi / 2 * float64(time-knot*period) / float64(period))
	return cos*n.before + sin*n.after
}

// draw returns a knot by inversion of the normal distribution.
func (n *noise) draw(knot int64) float64 {
	p := (float64(mix(n.seed+uint64(knot)*0x9e3779b97f4a7c15)>>11) + 0.5) / (1 << 53)
	return math.Sqrt2 * math.Erfinv(2*p-1)
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
// number generators", 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// normalProbability returns the cumulative standard normal distribution.
func normalProbability(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
