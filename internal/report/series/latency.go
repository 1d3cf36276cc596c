package series

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"skerry/internal/record"
)

// Curve is a distribution: the share Tail[i] of the operations, 0 to 1, took longer than US[i]
// microseconds.
type Curve struct {
	Operation string `json:"operation"`
	Clock     string `json:"clock"` // service or response
	Count     int64  `json:"count"`
	Tail      Values `json:"tail"`
	US        Values `json:"us"`
}

// Heat counts operations by time and latency: Counts[i][j] operations began in bin i and took from
// Edges[j] to Edges[j+1] microseconds.
type Heat struct {
	Clock  string    `json:"clock"`
	BinS   Number    `json:"bin_s"`
	T      Moments   `json:"t"`
	Edges  Values    `json:"edges"`
	Counts [][]int64 `json:"counts"`
}

// ReadLatencies reads a trial's histograms once. It returns the merged distributions, a heat map of
// at most columns columns, and percentiles by operation with at most points points.
func ReadLatencies(d *record.Dir, id, points, columns int) (curves []Curve, heat *Heat, each *Operations, err error) {
	merged := map[string]*hdrhistogram.Histogram{}
	var cells heatCells
	var operations operationTails
	err = d.Intervals(id, func(name string, at float64, h *hdrhistogram.PackedHistogram) {
		if strings.HasSuffix(name, ".response") {
			cells.add(at, h)
		}
		operations.add(name, at, h)
		merged[name] = record.MergeHistogram(merged[name], h)
	})
	for name, h := range merged {
		operation, clock, ok := strings.Cut(name, ".")
		if !ok || h.TotalCount() == 0 {
			continue
		}
		curves = append(curves, NewCurve(operation, clock, h))
	}
	slices.SortFunc(curves, func(a, b Curve) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Clock, b.Clock))
	})
	return curves, cells.heat(columns), operations.thinned(points), err
}

// NewCurve returns the distribution of a histogram in microseconds.
func NewCurve(operation, clock string, h *hdrhistogram.Histogram) Curve {
	c := Curve{Operation: operation, Clock: clock, Count: h.TotalCount()}
	for _, tail := range tailShares(c.Count) {
		c.Tail, c.US = append(c.Tail, tail), append(c.US, float64(h.ValueAtPercentile(100*(1-tail))))
	}
	return c
}

// pointsPerNine is the number of points of a curve for each further nine.
const pointsPerNine = 8

// tailShares returns the points of a curve: evenly spaced from 1 to 0.5, then logarithmically
// towards 0 as far as count operations resolve, and 0.
func tailShares(count int64) (shares []float64) {
	for percent := 100; percent > 50; percent -= 5 {
		shares = append(shares, float64(percent)/100)
	}
	for k := 0; ; k++ {
		share := 0.5 * math.Pow(10, -float64(k)/pointsPerNine)
		if share*float64(count) < 1 {
			return append(shares, 0)
		}
		shares = append(shares, share)
	}
}

// The heat map has perDecade rows per power of ten, from one microsecond to hours.
const (
	perDecade = 8
	decades   = 10
)

type heatCells struct {
	at     []float64
	counts [][]int64
	index  map[float64]int
}

func (c *heatCells) add(at float64, h *hdrhistogram.PackedHistogram) {
	if c.index == nil {
		c.index = map[float64]int{}
	}
	at = math.Floor(at + 0.5) // intervals of the operations end within milliseconds
	i, ok := c.index[at]
	if !ok {
		i = len(c.at)
		c.index[at] = i
		c.at = append(c.at, at)
		c.counts = append(c.counts, make([]int64, perDecade*decades))
	}
	for us, n := range h.ForEachBucket {
		c.counts[i][heatRow(us)] += n
	}
}

func heatRow(us int64) int {
	row := int(math.Floor(math.Log10(float64(max(1, us))) * perDecade))
	return min(max(0, row), perDecade*decades-1)
}

// heat bins the intervals and trims rows above and below all operations.
func (c *heatCells) heat(columns int) *Heat {
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
	size := binSize(len(order), columns)
	h := &Heat{Clock: "response", BinS: Number(size)}
	eachBin(len(order), 0, size, func(a, b int) {
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

// Operations are percentiles of the response time by kind of operation, in microseconds: the
// maximum over the seconds of a bin, 0 if no operation succeeded.
type Operations struct {
	BinS  int      `json:"bin_s"`
	T     Moments  `json:"t"`
	Names []string `json:"names"`
	P95   []Values `json:"p95"` // as Names
	P99   []Values `json:"p99"`
}

// Probes are the short jobs that ran besides the workload: their start times, and the 95th
// percentile by kind of operation in microseconds, 0 if no operation succeeded.
type Probes struct {
	T      Values   `json:"t"`
	Names  []string `json:"names"`
	P95    []Values `json:"p95"`              // as Names
	Failed int      `json:"failed,omitempty"` // jobs that did not run
}

type slowTail [2]float64

type operationTails struct {
	names []string
	at    map[int]map[string]slowTail
}

func (o *operationTails) add(log string, at float64, h *hdrhistogram.PackedHistogram) {
	name, ok := strings.CutSuffix(log, ".response")
	if !ok || h.TotalCount() == 0 {
		return
	}
	if o.at == nil {
		o.at = map[int]map[string]slowTail{}
	}
	if !slices.Contains(o.names, name) {
		o.names = append(o.names, name)
	}
	second := int(at + 0.5) // intervals of the operations end within milliseconds
	if o.at[second] == nil {
		o.at[second] = map[string]slowTail{}
	}
	q := h.ValueAtPercentilesSlice([]float64{95, 99})
	o.at[second][name] = o.at[second][name].highest(slowTail{float64(q[0]), float64(q[1])})
}

func (t slowTail) highest(u slowTail) slowTail { return slowTail{max(t[0], u[0]), max(t[1], u[1])} }

func (o *operationTails) thinned(most int) *Operations {
	if len(o.names) == 0 {
		return nil
	}
	slices.Sort(o.names)
	seconds := slices.Sorted(maps.Keys(o.at))
	out := &Operations{BinS: binSize(len(seconds), most), Names: o.names, P95: make([]Values, len(o.names)), P99: make([]Values, len(o.names))}
	eachBin(len(seconds), 0, out.BinS, func(a, b int) {
		out.T = append(out.T, float64(seconds[a]))
		for i, name := range o.names {
			var highest slowTail
			for _, s := range seconds[a:b] {
				highest = highest.highest(o.at[s][name])
			}
			out.P95[i], out.P99[i] = append(out.P95[i], highest[0]), append(out.P99[i], highest[1])
		}
	})
	return out
}

// NewProbes returns the short jobs of a trial in order of time.
func NewProbes(all []record.Probe) *Probes {
	if len(all) == 0 {
		return nil
	}
	all = slices.SortedFunc(slices.Values(all), func(a, b record.Probe) int { return cmp.Compare(a.StartS, b.StartS) })
	names := map[string]bool{}
	for _, p := range all {
		for name := range p.Operations {
			names[name] = true
		}
	}
	out := &Probes{Names: slices.Sorted(maps.Keys(names))}
	out.P95 = make([]Values, len(out.Names))
	for _, p := range all {
		out.T = append(out.T, p.StartS)
		if p.Error != "" {
			out.Failed++
		}
		for i, name := range out.Names {
			out.P95[i] = append(out.P95[i], p.Operations[name].Service.P95)
		}
	}
	return out
}
