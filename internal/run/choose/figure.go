package choose

import (
	"math"

	"skerry/internal/evidence/race"
	"skerry/internal/evidence/stats"
	"skerry/internal/record"
	"skerry/internal/record/metric"
)

// Figure is a metric of a candidate over its trials on a day.
type Figure struct {
	Name string      `json:"name"`
	Unit metric.Unit `json:"unit,omitempty"`
	Mean float64     `json:"mean"`
	// Low and High are the ends of the 95 % interval, both 0 where there is none.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
	N    int     `json:"n"`
}

// HasInterval tells whether Low and High mean anything.
func (f Figure) HasInterval() bool { return f.Low < f.High }

// wide is the share of the figure from which on an interval is told by its ends: it is lopsided then, as one is
// that ends at the whole.
const wide = 0.25

// String is the figure with its interval: "212 ms ± 9 ms", "212 ms (110 ms to 420 ms)". It has the digits
// that the interval leaves sure: two of the interval's own.
func (f Figure) String() string {
	if !f.HasInterval() {
		return f.Unit.Write(f.Mean)
	}
	half := max(f.High-f.Mean, f.Mean-f.Low)
	write := func(v float64) string { return f.Unit.Write(roundTo(v, half)) }
	if half <= wide*math.Abs(f.Mean) && (f.Unit != metric.Share || f.High < 1) {
		return write(f.Mean) + " ± " + write(half)
	}
	return write(f.Mean) + " (" + write(f.Low) + " to " + write(f.High) + ")"
}

// roundTo rounds to the place of the second digit of how far off a figure may be.
func roundTo(v, off float64) float64 {
	place := math.Pow(10, math.Floor(math.Log10(off))-1)
	return math.Round(v/place) * place
}

// told is how many trials a figure needs before their own scatter makes an interval: that of two is
// many times as wide as what they differ by, and tells nothing.
const told = 3

// figureOf is the mean over trials, with the interval of Student's t where there are enough of them. No figure is
// negative, and no share more than the whole.
func figureOf(trials []record.Trial, name string) (Figure, bool) {
	var values []float64
	f := Figure{Name: name}
	for _, t := range trials {
		if v, ok := figure(t, name); ok {
			values, f.Unit = append(values, v.V), v.Unit
		}
	}
	if len(values) == 0 {
		return f, false
	}
	e := stats.Of(values)
	f.Mean, f.N = e.Mean, e.N
	if e.N >= told {
		f.Low, f.High = max(e.Mean-e.HalfWidth, 0), e.Mean+e.HalfWidth
		if f.Unit == metric.Share {
			f.High = min(f.High, 1)
		}
	}
	return f, true
}

// ranked is a figure as the race ranks by it: the geometric mean, with an interval by what repetitions of all
// candidates differ by. So the table is in the order of what it shows. A share that all trials had in full stays so.
func (f Figure) ranked(s race.Standing) Figure {
	if s.Quiet == 0 || f.Unit == metric.Share && f.Mean == 1 {
		return f
	}
	f.Mean, f.N = unscored(f.Unit, s.Score), s.Quiet
	if s.Quiet > 1 {
		a, b := unscored(f.Unit, s.Low), unscored(f.Unit, s.High)
		f.Low, f.High = min(a, b), max(a, b)
	}
	return f
}

// unscored is the value that has a score.
func unscored(u metric.Unit, score float64) float64 {
	switch u {
	case metric.Rate:
		return 1 / score
	case metric.Share:
		return 1 - score
	}
	return score
}
