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
	// Tail is for shares of 0 to 1 of which the last ones matter: every further nine
	// (0.9, 0.99, 0.999) takes as much room.
	Tail
)

// Axis of a chart. Without Min and Max it covers the data; a linear one begins at 0 unless
// Loose is set.
type Axis struct {
	Label string
	Scale Scale
	// Min and Max widen what the data need; both 0 adds nothing.
	Min, Max float64
	Loose    bool
	// Format writes a tick's value; default is the shortest decimal.
	Format func(float64) string
	// Ticks, when given, are the only values that are marked.
	Ticks []float64
}

// tailEnd is the largest share that a tail axis can show: beyond five nines there
// are no samples.
const tailEnd = 0.99999

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
	if a.Min != 0 || a.Max != 0 {
		if a.Scale != Log || a.Min > 0 {
			lo = min(lo, a.Min)
		}
		hi = max(hi, a.Max)
	}
	r := ruler{Axis: a, from: from, to: to}
	switch a.Scale {
	case Log:
		r.layLog(lo, hi)
	case Tail:
		r.lo, r.hi = 0, tail(min(hi, tailEnd))
		if r.hi <= 0 {
			r.hi = tail(0.99)
		}
		r.ticks = tailTicks(r.hi)
	default:
		r.layLinear(lo, hi, want)
	}
	if len(a.Ticks) > 0 {
		r.ticks = a.Ticks
	}
	return r
}

func (r *ruler) layLinear(lo, hi float64, want int) {
	if lo > hi { // no data
		lo, hi = 0, 1
	}
	if !r.Loose {
		lo, hi = min(lo, 0), max(hi, 0)
	}
	if lo == hi {
		hi = lo + 1
	}
	if len(r.Ticks) == 0 {
		step := niceStep((hi - lo) / float64(max(1, want)))
		if !r.Loose {
			lo, hi = math.Floor(lo/step+1e-9)*step, math.Ceil(hi/step-1e-9)*step
		}
		first := math.Ceil(lo/step - 1e-9)
		for i := range 3 * max(1, want) { // more than there can be, whatever rounding does
			if t := (first+float64(i))*step + 0; t <= hi+step*1e-9 { // + 0 turns -0 into 0
				r.ticks = append(r.ticks, t)
			}
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

// tail maps a share so that 0.9, 0.99, 0.999 are at 1, 2, 3.
func tail(share float64) float64 { return -math.Log10(1 - min(max(share, 0), tailEnd)) }

func tailTicks(hi float64) []float64 {
	var ticks []float64
	for _, t := range []float64{0.5, 0.9, 0.99, 0.999, 0.9999, tailEnd} {
		if tail(t) <= hi+1e-9 {
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// at maps a value to its pixel.
func (r ruler) at(v float64) float64 {
	switch r.Scale {
	case Log:
		if v <= 0 {
			v = r.lo
		} else {
			v = math.Log10(v)
		}
	case Tail:
		v = tail(v)
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
