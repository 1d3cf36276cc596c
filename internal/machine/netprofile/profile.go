// Package netprofile holds a measurement of the network between machines and turns it into a topology and a trace, so that
// a lab on one machine reproduces round trips with their distribution, loss and bandwidth. It is pure computation.
//
//	round trips ─► shape: distance, jitter and its distribution ─► topology.yaml
//	            └► second by second: how far, how much is lost ───────────► trace.csv
package netprofile

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"skerry/internal/link"
)

// ErrNoData is returned if no two machines could be measured.
var ErrNoData = errors.New("no two machines have answered each other")

type Profile struct {
	Began time.Time `json:"began"`
	// Seconds is the duration of the measurement, EveryMS the interval between probes.
	Seconds  float64          `json:"seconds"`
	EveryMS  float64          `json:"every_ms"`
	Machines []MachineProfile `json:"machines"`
	Pairs    []PairProfile    `json:"pairs"`
}

type MachineProfile struct {
	Name string `json:"name"`
	Site string `json:"site,omitempty"`
	// Problem is the reason why the machine was not measured.
	Problem string `json:"problem,omitempty"`
}

// PairProfile is the result for two machines.
type PairProfile struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Problem string `json:"problem,omitempty"`
	Sent    int    `json:"sent"`
	Lost    int    `json:"lost"`
	// RTT holds the quantiles of round trips, Shape the fitted link.
	RTT   Quantiles `json:"rtt_ms"`
	Shape Shape     `json:"shape"`
	// There and Back are the total rates of TCP streams, in bit/s of IP packets, 0 if unknown.
	There int64 `json:"there_bps,omitempty"`
	Back  int64 `json:"back_bps,omitempty"`

	course []time.Duration // 0 for those that were lost
}

// Quantiles of round trips in ms.
type Quantiles struct {
	Min float64 `json:"min"`
	P5  float64 `json:"p5"`
	P25 float64 `json:"p25"`
	P50 float64 `json:"p50"`
	P75 float64 `json:"p75"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Shape is a link quality whose round trips have the measured distribution.
type Shape struct {
	// RTTMS is a round trip, JitterMS the jitter of each direction.
	RTTMS        float64           `json:"rtt_ms"`
	JitterMS     float64           `json:"jitter_ms"`
	Distribution link.Distribution `json:"distribution,omitempty"`
	// Loss of each direction, 0 to 1. A loss in either direction loses the answer.
	Loss float64 `json:"loss,omitempty"`
}

// Window is the time covered by a row of a trace.
const Window = time.Second

// AddSamples computes the pair's results from round trips in the order of sending, one every interval; 0 is a lost probe.
func (p *PairProfile) AddSamples(course []time.Duration) {
	p.course, p.Sent = course, len(course)
	trips := answered(course)
	p.Lost = p.Sent - len(trips)
	if len(trips) == 0 {
		return
	}
	at := func(q float64) float64 { return empiricalQuantile(q, trips) }
	p.RTT = Quantiles{Min: trips[0], P5: at(0.05), P25: at(0.25), P50: at(0.5), P75: at(0.75), P95: at(0.95), P99: at(0.99), Max: trips[len(trips)-1]}
	p.Shape = fit(trips)
	p.Shape.Loss = each(p.Lost, p.Sent)
}

// IsSteady removes from the pair's jitter what a trace represents: the shape is that within windows.
func (p *PairProfile) IsSteady(every time.Duration) {
	var within []float64
	for _, w := range windows(p.course, every) {
		trips := answered(w)
		for _, x := range trips {
			within = append(within, x-median(trips)+p.RTT.P50)
		}
	}
	if len(within) == 0 {
		return
	}
	slices.Sort(within)
	loss := p.Shape.Loss
	p.Shape = fit(within)
	p.Shape.Loss = loss
}

func windows(course []time.Duration, every time.Duration) [][]time.Duration {
	return slices.Collect(slices.Chunk(course, max(1, int(Window/every))))
}

// answered returns the non-zero round trips in ms, sorted.
func answered(course []time.Duration) []float64 {
	trips := make([]float64, 0, len(course))
	for _, d := range course {
		if d > 0 {
			trips = append(trips, float64(d)/float64(time.Millisecond))
		}
	}
	slices.Sort(trips)
	return trips
}

func median(sorted []float64) float64 { return empiricalQuantile(0.5, sorted) }

// empiricalQuantile returns the smallest value that at least the share q of sorted values does not exceed.
func empiricalQuantile(q float64, sorted []float64) float64 {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// fitLine returns the line y = a + b x of least squares.
func fitLine(x, y []float64) (a, b float64) {
	var mx, my, products, squares float64
	for i := range x {
		mx, my = mx+x[i]/float64(len(x)), my+y[i]/float64(len(y))
	}
	for i := range x {
		products += (x[i] - mx) * (y[i] - my)
		squares += (x[i] - mx) * (x[i] - mx)
	}
	b = products / squares
	return my - b*mx, b
}

// each returns the loss per direction from the share of lost round trips.
func each(lost, of int) float64 {
	if of == 0 {
		return 0
	}
	return 1 - math.Sqrt(1-float64(lost)/float64(of))
}

const (
	// draws is the number of values that represent a direction's jitter. points is the number of compared quantiles, of the
	// middle nine tenths.
	draws, points = 128, 91
	// leastJitter, in ms, is the smallest jitter that an emulator distinguishes from none.
	leastJitter = 0.01
)

// fit returns the distance, jitter and distribution whose round trips are closest to the given ones (sorted, in ms). A
// round trip has two directions with independent jitter:
//
//	quantile of the round trips ≈ RTT + jitter x quantile of the sum of two draws
//
// This is a line for each distribution. fit chooses the distribution with the smallest residual and shifts it to the
// measured median. It ignores the outermost twentieths: delays of a busy machine are not distance.
func fit(trips []float64) Shape {
	q := make([]float64, points)
	for i := range q {
		q[i] = quantile(trips, i)
	}
	best, least := Shape{RTTMS: median(trips)}, math.Inf(1)
	for _, d := range []link.Distribution{link.Normal, link.Uniform, link.Pareto, link.ParetoNormal} {
		sums := medianOfTwo(d)
		rtt, jitter := fitLine(sums, q)
		left := 0.0
		for i := range q {
			off := q[i] - rtt - jitter*sums[i]
			left += off * off
		}
		if left < least && jitter >= leastJitter {
			shape := Shape{RTTMS: median(trips) - jitter*sums[points/2], JitterMS: jitter, Distribution: d}
			if shape.JitterMS = min(jitter, shape.maxJitterMS()); shape.JitterMS < leastJitter {
				continue
			}
			best, least = shape, left
		}
	}
	return best
}

// maxJitterMS is the largest jitter per direction that the shape's delay permits, rounded to the microsecond.
func (s Shape) maxJitterMS() float64 {
	way := link.Quality{Latency: time.Duration(s.RTTMS / 2 * float64(time.Millisecond)), Distribution: s.Distribution}
	return math.Floor(way.MaxJitter().Seconds()*1e6) / 1e3
}

// medianOfTwo returns the quantiles of the sum of two draws.
func medianOfTwo(d link.Distribution) []float64 {
	one := d.Table(draws)
	sums := make([]float64, 0, draws*draws)
	for _, a := range one {
		for _, b := range one {
			sums = append(sums, a+b)
		}
	}
	slices.Sort(sums)
	q := make([]float64, points)
	for i := range q {
		q[i] = quantile(sums, i)
	}
	return q
}

// quantile returns the i-th compared quantile, from 5 to 95 %.
func quantile(sorted []float64, i int) float64 {
	return empiricalQuantile(float64(i+5)/100, sorted)
}

// Write prints the profile as text: a line per pair, and failed measurements.
func (p Profile) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FROM\tTO\tRTT P5\tMEDIAN\tP95\tP99\tMAX\tJITTER, ONE WAY\tLOST\tTHERE\tBACK")
	for _, x := range p.Pairs {
		if x.Sent == x.Lost {
			fmt.Fprintf(t, "%s\t%s\t-\t-\t-\t-\t-\t-\t%d of %d\t-\t-\n", x.From, x.To, x.Lost, x.Sent)
			continue
		}
		jitter := "none"
		if x.Shape.JitterMS > 0 {
			jitter = fmt.Sprintf("%.2f ms, %s", x.Shape.JitterMS, x.Shape.Distribution)
		}
		q := x.RTT
		fmt.Fprintf(t, "%s\t%s\t%.2f ms\t%.2f ms\t%.2f ms\t%.2f ms\t%.2f ms\t%s\t%d of %d\t%s\t%s\n", x.From, x.To, q.P5, q.P50, q.P95, q.P99, q.Max, jitter, x.Lost, x.Sent, formatRow(x.There), formatRow(x.Back))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var problems []string
	for _, m := range p.Machines {
		if m.Problem != "" {
			problems = append(problems, m.Problem)
		}
	}
	for _, x := range p.Pairs {
		if x.Problem != "" {
			problems = append(problems, fmt.Sprintf("%s to %s: %s", x.From, x.To, x.Problem))
		}
	}
	for _, s := range problems {
		if _, err := fmt.Fprintln(w, s); err != nil {
			return err
		}
	}
	return nil
}

func formatRow(bps int64) string {
	if bps == 0 {
		return "-"
	}
	return rate(bps)
}

// IsComplete reports whether all machines were reached and all pairs measured.
func (p Profile) IsComplete() bool {
	for _, m := range p.Machines {
		if m.Problem != "" {
			return false
		}
	}
	for _, x := range p.Pairs {
		if x.Sent == x.Lost {
			return false
		}
	}
	return true
}
