package webdata

import (
	"slices"

	"skerry/internal/record"
)

func timelineOf(rows []record.Second, most int) *Timeline {
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
	rate := func(s *series, of func(record.Second) int64) {
		sum := int64(0)
		for _, r := range rows {
			sum += of(r)
		}
		*s = append(*s, float64(sum)/length)
	}
	highest := func(s *series, of func(record.Second) float64) {
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

func networkOf(rows []record.NetworkSecond, most int) *Network {
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
