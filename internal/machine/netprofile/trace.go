package netprofile

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"time"
)

// change, in ms, is how far a way must have changed for a trace to say so.
const change = 0.01

// row is a window of a pair.
type row struct {
	at      float64 // s
	pair    int
	latency float64 // ms, one way; NaN where nothing came back
	loss    float64 // of one way
}

// Trace writes how round trips and losses went, a row each direction and Window in which they changed, as
// an experiment's drift takes it. The columns are those of docs/experiment-reference.md: time_s, from, to,
// latency_ms (one way) and loss.
func (p Portrait) Trace() ([]byte, error) {
	_, nodes := p.names()
	var rows []row
	for i, x := range p.Pairs {
		if x.Sent > x.Lost {
			rows = append(rows, x.rows(i, time.Duration(p.EveryMS*float64(time.Millisecond)))...)
		}
	}
	if len(rows) == 0 {
		return nil, ErrNothing
	}
	slices.SortStableFunc(rows, func(a, b row) int { return int(a.at*1000) - int(b.at*1000) })
	var b bytes.Buffer
	fmt.Fprintf(&b, "# What lay between machines from %s on. In an experiment: drift: {trace: this file}.\n", p.Began.UTC().Format("2006-01-02 15:04:05 UTC"))
	fmt.Fprintln(&b, "time_s,from,to,latency_ms,loss")
	for _, r := range rows {
		latency := ""
		if !math.IsNaN(r.latency) {
			latency = fmt.Sprintf("%.3f", r.latency)
		}
		x := p.Pairs[r.pair]
		for _, ends := range [][2]string{{nodes[x.From], nodes[x.To]}, {nodes[x.To], nodes[x.From]}} {
			fmt.Fprintf(&b, "%g,%s,%s,%s,%s\n", r.at, ends[0], ends[1], latency, share(r.loss))
		}
	}
	return b.Bytes(), nil
}

// rows are the windows of a pair in which something changed.
func (x Pair) rows(pair int, every time.Duration) (rows []row) {
	last := row{latency: math.Inf(1)}
	for i, w := range windows(x.course, every) {
		trips := answered(w)
		r := row{at: (time.Duration(i) * Window).Seconds(), pair: pair, latency: math.NaN(), loss: each(len(w)-len(trips), len(w))}
		if len(trips) > 0 {
			r.latency = median(trips) / 2
		}
		if math.Abs(r.latency-last.latency) < change && r.loss == last.loss || math.IsNaN(r.latency) && r.loss == last.loss {
			continue
		}
		rows, last = append(rows, r), r
	}
	return rows
}
