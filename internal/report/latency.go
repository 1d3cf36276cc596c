package report

import (
	"cmp"
	"errors"
	"maps"
	"runtime"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"skerry/internal/record"
)

type operation struct {
	name    string
	count   int64
	latency record.Latency // response time, us
	// hist is the merged histogram, nil if a trial recorded none.
	hist *hdrhistogram.Histogram
}

// mergeOperations merges the operations of trials. Percentiles come from merged histograms. If a
// trial has no histogram, they are the means of the trials' percentiles.
func (m *model) mergeOperations(trials []record.Trial) []operation {
	byName := map[string]*operation{}
	merged := map[string]int{} // number of merged histograms
	trialsWith := map[string]int{}
	for i, read := range m.readHistograms(trials) {
		t := trials[i]
		if read.err != nil {
			m.notes = append(m.notes, read.err.Error())
		}
		for name, s := range t.Operations {
			o := byName[name]
			if o == nil {
				o = &operation{name: name}
				byName[name] = o
			}
			o.count += s.Count
			if s.Count == 0 {
				continue
			}
			trialsWith[name]++
			addLatency(&o.latency, s.Latency())
			if h := read.response[name]; h != nil {
				o.merge(h)
				merged[name]++
			}
		}
	}
	for name, o := range byName {
		n := trialsWith[name]
		if n > 0 && merged[name] == n {
			o.latency = summarizeHistogram(o.hist)
			continue
		}
		o.hist = nil
		scaleLatency(&o.latency, 1/float64(max(1, n)))
	}
	out := make([]operation, 0, len(byName))
	for _, o := range byName {
		out = append(out, *o)
	}
	slices.SortFunc(out, func(a, b operation) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.name, b.name))
	})
	return out
}

// putLeadingFirst moves the same operation to the front of every cell, so that cells are compared
// by the same kind. It prefers operations that every measured cell has, then the most frequent one.
func (g *group) putLeadingFirst() {
	counts, cells, measured := map[string]int64{}, map[string]int{}, 0
	for _, c := range g.cells {
		if len(c.operations) > 0 {
			measured++
		}
		for _, o := range c.operations {
			if o.count > 0 {
				counts[o.name] += o.count
				cells[o.name]++
			}
		}
	}
	var all, common []operation
	for name, n := range counts {
		all = append(all, operation{name: name, count: n})
		if cells[name] == measured {
			common = append(common, all[len(all)-1])
		}
	}
	if len(common) == 0 {
		common = all
	}
	name := leadingName(common)
	for _, c := range g.cells {
		if at := slices.IndexFunc(c.operations, func(o operation) bool { return o.name == name }); at > 0 {
			first := c.operations[at]
			c.operations = slices.Insert(slices.Delete(c.operations, at, at+1), 0, first)
		}
	}
}

func (c *cell) operation(name string) operation {
	for _, o := range c.operations {
		if o.name == name {
			return o
		}
	}
	return operation{}
}

// leadingShare is the share of the largest count above which counts are considered equal. In a
// workload of half reads and half updates, chance decides which count is larger.
const leadingShare = 0.9

func leadingName(operations []operation) (name string) {
	var most int64
	for _, o := range operations {
		most = max(most, o.count)
	}
	for _, o := range operations {
		if float64(o.count) >= leadingShare*float64(most) && (name == "" || o.name < name) {
			name = o.name
		}
	}
	return name
}

func (o *operation) merge(h *hdrhistogram.Histogram) {
	if o.hist == nil {
		o.hist = h
		return
	}
	o.hist.Merge(h)
}

// trialHistograms are the histograms of a trial by operation: response times, else service times.
type trialHistograms struct {
	response map[string]*hdrhistogram.Histogram
	err      error
}

func (m *model) readHistograms(trials []record.Trial) []trialHistograms {
	out := make([]trialHistograms, len(trials))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, t := range trials {
		g.Go(func() error {
			read := trialHistograms{response: map[string]*hdrhistogram.Histogram{}}
			for _, name := range slices.Sorted(maps.Keys(t.Operations)) {
				for _, clock := range []string{".response", ".service"} {
					h, err := m.dir.Histogram(t.ID, name+clock)
					read.err = errors.Join(read.err, err)
					if h != nil && h.TotalCount() > 0 {
						read.response[name] = h
						break
					}
				}
			}
			out[i] = read
			return nil
		})
	}
	_ = g.Wait() // errors are in out
	return out
}

func summarizeHistogram(h *hdrhistogram.Histogram) record.Latency {
	q := func(p float64) float64 { return float64(h.ValueAtPercentile(p)) }
	return record.Latency{Mean: h.Mean(), P50: q(50), P95: q(95), P99: q(99), P999: q(99.9), Max: float64(h.Max())}
}

func addLatency(sum *record.Latency, l record.Latency) {
	sum.Mean += l.Mean
	sum.P50 += l.P50
	sum.P95 += l.P95
	sum.P99 += l.P99
	sum.P999 += l.P999
	sum.Max += l.Max
}

func scaleLatency(l *record.Latency, f float64) {
	l.Mean *= f
	l.P50 *= f
	l.P95 *= f
	l.P99 *= f
	l.P999 *= f
	l.Max *= f
}

func (c *cell) leadingOperation() (operation, bool) {
	if len(c.operations) == 0 || c.operations[0].count == 0 {
		return operation{}, false
	}
	return c.operations[0], true
}
