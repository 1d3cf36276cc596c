package series

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"skerry/internal/record"
)

// Curve is a distribution: Tail[i] of the operations, a share of 0 to 1, took longer than
// US[i] microseconds.
type Curve struct {
	Operation string `json:"operation"`
	Clock     string `json:"clock"` // service or response
	Count     int64  `json:"count"`
	Tail      Values `json:"tail"`
	US        Values `json:"us"`
}

// Heat counts operations by time and latency: Counts[i][j] began in bin i and took from
// Edges[j] to Edges[j+1] microseconds.
type Heat struct {
	Clock  string    `json:"clock"`
	BinS   Number    `json:"bin_s"`
	T      Moments   `json:"t"`
	Edges  Values    `json:"edges"`
	Counts [][]int64 `json:"counts"`
}

// Latencies reads a trial's histograms once: the merged distributions, the heat map of so many
// columns at most, and what is told of each operation at so many points at most.
func Latencies(d *record.Dir, id, points, columns int) (curves []Curve, heat *Heat, each *Operations, err error) {
	merged := map[string]*hdrhistogram.Histogram{}
	var cells cells
	var operations byOperation
	err = d.Intervals(id, func(name string, at float64, h *hdrhistogram.PackedHistogram) {
		if strings.HasSuffix(name, ".response") {
			cells.add(at, h)
		}
		operations.add(name, at, h)
		merged[name] = record.Merge(merged[name], h)
	})
	for name, h := range merged {
		operation, clock, ok := strings.Cut(name, ".")
		if !ok || h.TotalCount() == 0 {
			continue
		}
		curves = append(curves, CurveOf(operation, clock, h))
	}
	slices.SortFunc(curves, func(a, b Curve) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Clock, b.Clock))
	})
	return curves, cells.heat(columns), operations.thinned(points), err
}

// CurveOf is the distribution that a histogram in microseconds counts.
func CurveOf(operation, clock string, h *hdrhistogram.Histogram) Curve {
	c := Curve{Operation: operation, Clock: clock, Count: h.TotalCount()}
	for _, tail := range tails(c.Count) {
		c.Tail, c.US = append(c.Tail, tail), append(c.US, float64(h.ValueAtPercentile(100*(1-tail))))
	}
	return c
}

// perNine is how many points a curve has for each further nine.
const perNine = 8

// tails are the shares of operations that took longer, at each point of a curve: even down to
// the half, then closer and closer to 0 as far as count operations tell anything, and 0.
func tails(count int64) (shares []float64) {
	for percent := 100; percent > 50; percent -= 5 {
		shares = append(shares, float64(percent)/100)
	}
	for k := 0; ; k++ {
		share := 0.5 * math.Pow(10, -float64(k)/perNine)
		if share*float64(count) < 1 {
			return append(shares, 0)
		}
		shares = append(shares, share)
	}
}

// Rows of the heat map: so many a power of ten, from a microsecond to an hour.
const (
	perDecade = 8
	decades   = 10
)

// cells are counts by interval and row.
type cells struct {
	at     []float64
	counts [][]int64
	index  map[float64]int
}

func (c *cells) add(at float64, h *hdrhistogram.PackedHistogram) {
	if c.index == nil {
		c.index = map[float64]int{}
	}
	at = math.Floor(at + 0.5) // operations end their seconds within milliseconds of each other
	i, ok := c.index[at]
	if !ok {
		i = len(c.at)
		c.index[at] = i
		c.at = append(c.at, at)
		c.counts = append(c.counts, make([]int64, perDecade*decades))
	}
	for us, n := range h.ForEachBucket {
		c.counts[i][rowOf(us)] += n
	}
}

func rowOf(us int64) int {
	row := int(math.Floor(math.Log10(float64(max(1, us))) * perDecade))
	return min(max(0, row), perDecade*decades-1)
}

// heat bins the intervals and leaves out rows above and below all operations.
func (c *cells) heat(columns int) *Heat {
	lo, hi := perDecade*decades, -1
	for _, row := range c.counts {
		for j, n := range row {
			if n > 0 {
				lo, hi = min(lo, j), max(hi, j)
			}
		}
	}
	if hi < 0 {
		return nil
	}
	order := make([]int, len(c.at))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(c.at[a], c.at[b]) })
	size := binOf(len(order), columns)
	h := &Heat{Clock: "response", BinS: Number(size)}
	bins(len(order), 0, size, func(a, b int) {
		column := make([]int64, hi-lo+1)
		for _, i := range order[a:b] {
			for j := range column {
				column[j] += c.counts[i][lo+j]
			}
		}
		h.T = append(h.T, c.at[order[a]])
		h.Counts = append(h.Counts, column)
	})
	for j := lo; j <= hi+1; j++ {
		h.Edges = append(h.Edges, math.Pow(10, float64(j)/perDecade))
	}
	return h
}
