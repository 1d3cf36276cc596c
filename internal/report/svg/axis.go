package svg

import (
	"math"
	"strconv"
)

// Scale is how an axis maps values to distance.
type Scale int

// Scales.
const (
	Linear Scale = iota
	Log
)

// Axis of a chart. It covers the data; a linear one also covers 0.
type Axis struct {
	Label string
	Scale Scale
	// Format writes a tick's value; default is the shortest decimal.
	Format func(float64) string
}

// ruler is an axis laid over data and pixels.
type ruler struct {
	Axis
	lo, hi   float64 // in the scale's own terms
	from, to float64 // pixels
	ticks    []float64
}

// lay fits the axis over values and into pixels; want is about how many ticks.
func (a Axis) lay(values []float64, from, to float64, want int) ruler {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) || a.Scale == Log && v <= 0 {
			continue
		}
		lo, hi = min(lo, v), max(hi, v)
	}
	r := ruler{Axis: a, from: from, to: to}
	if a.Scale == Log {
		r.layLog(lo, hi)
	} else {
		r.layLinear(lo, hi, want)
	}
	return r
}

func (r *ruler) layLinear(lo, hi float64, want int) {
	if lo > hi { // no data
		lo, hi = 0, 1
	}
	lo, hi = min(lo, 0), max(hi, 0)
	if lo == hi {
		hi = lo + 1
	}
	step := niceStep((hi - lo) / float64(max(1, want)))
	lo, hi = math.Floor(lo/step+1e-9)*step, math.Ceil(hi/step-1e-9)*step
	first := math.Ceil(lo/step - 1e-9)
	for i := range 3 * max(1, want) { // more than there can be, whatever rounding does
		if t := (first+float64(i))*step + 0; t <= hi+step*1e-9 { // + 0 turns -0 into 0
			r.ticks = append(r.ticks, t)
		}
	}
	r.lo, r.hi = lo, hi
}

// niceStep is the smallest of 1, 2, 5 times a power of ten that is not below step.
func niceStep(step float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*power >= step*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

func (r *ruler) layLog(lo, hi float64) {
	if lo > hi {
		lo, hi = 1, 10
	}
	if lo == hi {
		lo, hi = lo/2, hi*2
	}
	r.lo, r.hi = math.Log10(lo), math.Log10(hi)
	margin := 0.03 * (r.hi - r.lo)
	r.lo, r.hi = r.lo-margin, r.hi+margin
	multiples := []float64{1}
	if r.hi-r.lo < 3 {
		multiples = []float64{1, 2, 5}
	}
	if r.hi-r.lo < 0.5 {
		multiples = []float64{1, 1.5, 2, 3, 4, 5, 6, 8}
	}
	for d := math.Floor(r.lo); d <= r.hi; d++ {
		for _, m := range multiples {
			if at := math.Log10(m) + d; at >= r.lo && at <= r.hi {
				r.ticks = append(r.ticks, m*math.Pow(10, d))
			}
		}
	}
}

// at maps a value to its pixel.
func (r ruler) at(v float64) float64 {
	switch {
	case r.Scale == Log && v <= 0:
		v = r.lo
	case r.Scale == Log:
		v = math.Log10(v)
	}
	if r.hi == r.lo {
		return r.from
	}
	return r.from + (v-r.lo)/(r.hi-r.lo)*(r.to-r.from)
}

func (r ruler) write(v float64) string {
	if r.Format != nil {
		return r.Format(v)
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}
