package oracle

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"skerry/internal/load/ycsb"
)

// mostStatistics bounds the number of compared statistics of one workload.
const mostStatistics = 10

// counts are the frequencies of the values of each statistic.
type counts map[string]map[string]int64

func (c counts) add(statistic, value string, n int64) {
	if c[statistic] == nil {
		c[statistic] = map[string]int64{}
	}
	c[statistic][value] += n
}

// addLengths counts lengths of values. YCSB 0.17.0 gives values of a histogram's last bucket the length of the previous
// bucket, because its loop ends too early. Skerry does not; here its values count as YCSB's.
func (c counts) addLengths(statistic string, w ycsb.Workload, values []ycsb.Field) {
	for _, v := range values {
		n := int64(len(v.Value))
		if l := w.FieldLength; l.Distribution == ycsb.Histogram {
			n = min(n, l.Max-l.Block)
		}
		c.add(statistic, strconv.FormatInt(n, 10), 1)
	}
}

// leastDrawn is the minimum number of draws of both sides in a cell of chiSquare.
const leastDrawn = 20

// chiSquare is Pearson's statistic for the hypothesis that two samples have the same distribution, with its p value.
// Neighbouring values share a cell until it has enough draws.
func chiSquare(a, b map[string]int64) (x float64, cells int, p float64) {
	values := map[string]struct{}{}
	var totalA, totalB float64
	for v, n := range a {
		values[v] = struct{}{}
		totalA += float64(n)
	}
	for v, n := range b {
		values[v] = struct{}{}
		totalB += float64(n)
	}
	if totalA == 0 || totalB == 0 {
		return 0, 0, 0
	}
	type cell struct{ a, b float64 }
	var all []cell
	var open cell
	for _, v := range slices.SortedFunc(maps.Keys(values), byNumber) {
		open.a, open.b = open.a+float64(a[v]), open.b+float64(b[v])
		if open.a+open.b >= leastDrawn {
			all, open = append(all, open), cell{}
		}
	}
	if len(all) > 0 { // the remaining values join the last cell
		all[len(all)-1].a += open.a
		all[len(all)-1].b += open.b
	}
	for _, c := range all {
		d := c.a*totalB - c.b*totalA
		x += d * d / (totalA * totalB * (c.a + c.b))
	}
	if len(all) < 2 {
		return x, len(all), 1
	}
	return x, len(all), distuv.ChiSquared{K: float64(len(all) - 1)}.Survival(x)
}

// byNumber sorts numbers by value, followed by other words.
func byNumber(a, b string) int {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	switch {
	case errX == nil && errY == nil && x < y, errX == nil && errY != nil:
		return -1
	case errX == nil && errY == nil && x > y, errX != nil && errY == nil:
		return 1
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// The comparison accepts samples of one distribution, and rejects a sample with an error of a per cent in one of a
// hundred values.
func TestChiSquare(t *testing.T) {
	sample := func(seed uint64, n int, more float64) map[string]int64 {
		r, out := rand.New(rand.NewPCG(seed, 1)), map[string]int64{}
		for range n {
			v := r.IntN(100)
			if r.Float64() < more {
				v = 7
			}
			out[strconv.Itoa(v)]++
		}
		return out
	}
	if x, cells, p := chiSquare(sample(1, 400_000, 0), sample(2, 200_000, 0)); p < 0.001 || cells != 100 {
		t.Errorf("two samples of one distribution: chi-square %.0f in %d cells, p = %g", x, cells, p)
	}
	if x, _, p := chiSquare(sample(1, 400_000, 0), sample(2, 200_000, 0.01)); p > 1e-12 {
		t.Errorf("two different distributions: chi-square %.0f, p = %g", x, p)
	}
	if _, _, p := chiSquare(map[string]int64{"a": 50}, map[string]int64{"b": 50}); p > 1e-12 {
		t.Errorf("values that one side never draws: p = %g", p)
	}
}
