package series

import (
	"slices"

	"skerry/internal/record"
)

// Timeline is what the driver saw. Rates are means over a bin, latencies the highest of a
// bin's seconds, in microseconds: percentiles are never averaged.
type Timeline struct {
	BinS    int     `json:"bin_s"` // seconds in a bin
	T       Moments `json:"t"`     // begin of each bin, in seconds since the measurement began
	OK      Values  `json:"ok"`    // operations a second
	Failed  Values  `json:"failed"`
	Unknown Values  `json:"unknown"`
	Dropped Values  `json:"dropped"`

	ServiceP50   Values `json:"service_p50"`
	ServiceP99   Values `json:"service_p99"`
	ServiceP999  Values `json:"service_p999"`
	ResponseP50  Values `json:"response_p50"`
	ResponseP99  Values `json:"response_p99"`
	ResponseP999 Values `json:"response_p999"`
	InFlight     Values `json:"in_flight"`
}

// Network is what packets met between nodes where an overlay routes.
type Network struct {
	BinS        int     `json:"bin_s"`
	T           Moments `json:"t"`
	MeanMS      Values  `json:"mean_ms"`
	WorstMS     Values  `json:"worst_ms"`
	Unreachable Values  `json:"unreachable"`
}

// TimelineOf thins what the driver saw to at most so many bins; nil where there is nothing.
func TimelineOf(rows []record.Second, most int) *Timeline {
	if len(rows) == 0 {
		return nil
	}
	t := &Timeline{BinS: binOf(len(rows), most)}
	bins(len(rows), slices.IndexFunc(rows, func(r record.Second) bool { return r.T >= 0 }), t.BinS, func(a, b int) { t.add(rows[a:b]) })
	return t
}

func (t *Timeline) add(rows []record.Second) {
	length := 0.0
	for _, r := range rows {
		length += r.Length
	}
	if length <= 0 {
		length = float64(len(rows))
	}
	rate := func(s *Values, of func(record.Second) int64) {
		sum := int64(0)
		for _, r := range rows {
			sum += of(r)
		}
		*s = append(*s, float64(sum)/length)
	}
	highest := func(s *Values, of func(record.Second) float64) {
		v := 0.0
		for _, r := range rows {
			v = max(v, of(r))
		}
		*s = append(*s, v)
	}
	t.T = append(t.T, float64(rows[0].T))
	rate(&t.OK, func(r record.Second) int64 { return r.OK })
	rate(&t.Failed, func(r record.Second) int64 { return r.Failed })
	rate(&t.Unknown, func(r record.Second) int64 { return r.Unknown })
	rate(&t.Dropped, func(r record.Second) int64 { return r.Dropped })
	highest(&t.ServiceP50, func(r record.Second) float64 { return r.ServiceP50 })
	highest(&t.ServiceP99, func(r record.Second) float64 { return r.ServiceP99 })
	highest(&t.ServiceP999, func(r record.Second) float64 { return r.ServiceP999 })
	highest(&t.ResponseP50, func(r record.Second) float64 { return r.ResponseP50 })
	highest(&t.ResponseP99, func(r record.Second) float64 { return r.ResponseP99 })
	highest(&t.ResponseP999, func(r record.Second) float64 { return r.ResponseP999 })
	highest(&t.InFlight, func(r record.Second) float64 { return float64(r.InFlight) })
}

// NetworkOf thins what packets met to at most so many bins; nil where there is nothing.
func NetworkOf(rows []record.NetworkSecond, most int) *Network {
	if len(rows) == 0 {
		return nil
	}
	n := &Network{BinS: binOf(len(rows), most)}
	bins(len(rows), slices.IndexFunc(rows, func(r record.NetworkSecond) bool { return r.T >= 0 }), n.BinS, func(a, b int) {
		mean, worst, gone := 0.0, 0.0, 0.0
		for _, r := range rows[a:b] {
			mean += r.Mean / float64(b-a)
			worst, gone = max(worst, r.Worst), max(gone, float64(r.Unreachable))
		}
		n.T, n.MeanMS, n.WorstMS, n.Unreachable = append(n.T, float64(rows[a].T)), append(n.MeanMS, mean), append(n.WorstMS, worst), append(n.Unreachable, gone)
	})
	return n
}
