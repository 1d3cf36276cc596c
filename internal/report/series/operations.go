package series

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"skerry/internal/record"
)

// Operations has percentiles of the response time of each kind of operation over time, in
// microseconds: the highest of a bin's seconds, 0 where none ended ok.
type Operations struct {
	BinS  int      `json:"bin_s"`
	T     Moments  `json:"t"`
	Names []string `json:"names"`
	P95   []Values `json:"p95"` // as Names
	P99   []Values `json:"p99"`
}

// Probes are the short jobs beside the workload: when each began, and the 95th percentile of
// its operations by kind, in microseconds, 0 where none ended ok.
type Probes struct {
	T      Values   `json:"t"`
	Names  []string `json:"names"`
	P95    []Values `json:"p95"`              // as Names
	Failed int      `json:"failed,omitempty"` // jobs that could not be driven
}

// tail is the slow end of one second of an operation: its 95th and its 99th percentile.
type tail [2]float64

// byOperation gathers the tail of each operation, second by second.
type byOperation struct {
	names []string
	at    map[int]map[string]tail
}

// add takes an interval of a log in. Logs are of one trial and begin with its measurement.
func (o *byOperation) add(log string, at float64, h *hdrhistogram.PackedHistogram) {
	name, ok := strings.CutSuffix(log, ".response")
	if !ok || h.TotalCount() == 0 {
		return
	}
	if o.at == nil {
		o.at = map[int]map[string]tail{}
	}
	if !slices.Contains(o.names, name) {
		o.names = append(o.names, name)
	}
	second := int(at + 0.5) // operations end their seconds within milliseconds of each other
	if o.at[second] == nil {
		o.at[second] = map[string]tail{}
	}
	q := h.ValueAtPercentilesSlice([]float64{95, 99})
	o.at[second][name] = o.at[second][name].highest(tail{float64(q[0]), float64(q[1])})
}

func (t tail) highest(u tail) tail { return tail{max(t[0], u[0]), max(t[1], u[1])} }

// thinned is at most so many bins, each with the highest of its seconds.
func (o *byOperation) thinned(most int) *Operations {
	if len(o.names) == 0 {
		return nil
	}
	slices.Sort(o.names)
	seconds := slices.Sorted(maps.Keys(o.at))
	out := &Operations{BinS: binOf(len(seconds), most), Names: o.names, P95: make([]Values, len(o.names)), P99: make([]Values, len(o.names))}
	bins(len(seconds), 0, out.BinS, func(a, b int) {
		out.T = append(out.T, float64(seconds[a]))
		for i, name := range o.names {
			var highest tail
			for _, s := range seconds[a:b] {
				highest = highest.highest(o.at[s][name])
			}
			out.P95[i], out.P99[i] = append(out.P95[i], highest[0]), append(out.P99[i], highest[1])
		}
	})
	return out
}

// ProbesOf are the short jobs beside a trial's workload, in order of time. Of a job without
// an operation of a kind, as of one that failed, nothing is told of it.
func ProbesOf(all []record.Probe) *Probes {
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
