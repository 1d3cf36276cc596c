package series

import (
	"maps"
	"slices"

	"skerry/internal/record"
)

// Rates are several rates beside each other over time, operations a second.
type Rates struct {
	BinS  int      `json:"bin_s"`
	T     Moments  `json:"t"`
	Names []string `json:"names"`
	Rate  []Values `json:"rate"` // as Names
}

// PoolsOf has the goodput of each of several workloads; nil of a single one.
func PoolsOf(rows []record.PoolSecond, seconds []record.Second, most int) *Rates {
	return ratesOf(seconds, most, func(add func(t int64, name string, n int64)) {
		for _, r := range rows {
			add(r.T, r.Pool, r.OK)
		}
	})
}

// ErrorsOf has the operations that did not end ok by their class: "unknown timeout". It is nil where
// all ended ok.
func ErrorsOf(rows []record.ErrorSecond, seconds []record.Second, most int) *Rates {
	return ratesOf(seconds, most, func(add func(t int64, name string, n int64)) {
		for _, r := range rows {
			add(r.T, r.Outcome+" "+r.Class, r.Count)
		}
	})
}

// ratesOf counts by name over the seconds of a timeline, in the bins that TimelineOf makes of it.
func ratesOf(seconds []record.Second, most int, each func(add func(t int64, name string, n int64))) *Rates {
	counts := map[string]map[int64]int64{}
	each(func(t int64, name string, n int64) {
		if counts[name] == nil {
			counts[name] = map[int64]int64{}
		}
		counts[name][t] += n
	})
	if len(counts) == 0 || len(seconds) == 0 {
		return nil
	}
	out := &Rates{BinS: binOf(len(seconds), most), Names: slices.Sorted(maps.Keys(counts))}
	out.Rate = make([]Values, len(out.Names))
	measured := slices.IndexFunc(seconds, func(r record.Second) bool { return r.T >= 0 })
	bins(len(seconds), measured, out.BinS, func(a, b int) {
		out.T = append(out.T, float64(seconds[a].T))
		length := 0.0
		for i := a; i < b; i++ {
			length += seconds[i].Length
		}
		for k, name := range out.Names {
			sum := int64(0)
			for i := a; i < b; i++ {
				if i == a || seconds[i].T != seconds[i-1].T { // two rows of one second share its count
					sum += counts[name][seconds[i].T]
				}
			}
			out.Rate[k] = append(out.Rate[k], float64(sum)/max(length, 1e-3))
		}
	})
	return out
}
