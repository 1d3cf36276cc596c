package shaper

import "math"

// noise is a random process in continuous time whose values are normal, with mean 0 and
// standard deviation 1, at every moment.
//
// Knots z(k) at the times k * period are independent and normal. Between two of them
//
//	x(t) = cos(a) z(k) + sin(a) z(k+1),  a = pi/2 * (t/period - k)
//
// is normal with variance cos² + sin² = 1. x is continuous, its slope has the standard
// deviation pi/2 / period, and values two periods apart are independent. Drawing each packet's
// delay on its own instead would change the mean of the delays with the rate of packets: a
// packet may not overtake the one before it, so the largest of several close delays would hold
// for all of them.
type noise struct {
	seed   uint64
	period int64 // of the knots below
	knot   int64
	before float64 // z(knot)
	after  float64 // z(knot+1)
}

// at returns the process at a time. The same seed and period give the same values, in
// whatever order they are asked for.
func (n *noise) at(time, period int64) float64 {
	knot := time / period
	if period != n.period || knot != n.knot {
		n.period, n.knot = period, knot
		n.before, n.after = n.draw(knot), n.draw(knot+1)
	}
	sin, cos := math.Sincos(math.Pi / 2 * float64(time-knot*period) / float64(period))
	return cos*n.before + sin*n.after
}

// draw returns the knot of a number, by inversion of the normal distribution.
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

// normalProbability is the probability that a standard normal value is at most x.
func normalProbability(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
