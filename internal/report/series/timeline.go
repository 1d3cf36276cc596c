// Package series holds the time series and distributions of a trial for charts, thinned to the
// resolution of a screen. Rates are means over a bin. Latencies are the maximum over the seconds of
// a bin, in microseconds, because percentiles must not be averaged. See docs/report.md.
package series

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"skerry/internal/record"
)

func binSize(rows, most int) int { return max(1, (rows+most-1)/max(1, most)) }

// eachBin calls f with the half-open range of rows of every bin. from is the first row of the
// measurement: a bin never holds rows of both the warm-up and the measurement.
func eachBin(rows, from, size int, f func(a, b int)) {
	for a := 0; a < rows; {
		b := min(a+size, rows)
		if a < from {
			b = min(b, from)
		}
		f(a, b)
		a = b
	}
}

// Timeline is the load driver's view of a trial. See the package comment for rates and latencies.
type Timeline struct {
	BinS    int     `json:"bin_s"` // seconds per bin
	T       Moments `json:"t"`     // start of each bin, in seconds of the measurement
	OK      Values  `json:"ok"`    // operations per second
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

// Network holds round trips between nodes of an overlay network.
type Network struct {
	BinS        int     `json:"bin_s"`
	T           Moments `json:"t"`
	MeanMS      Values  `json:"mean_ms"`
	WorstMS     Values  `json:"worst_ms"`
	Unreachable Values  `json:"unreachable"`
}

// NewTimeline thins the timeline to at most most bins. It returns nil if there are no rows.
func NewTimeline(rows []record.Second, most int) *Timeline {
	if len(rows) == 0 {
		return nil
	}
	t := &Timeline{BinS: binSize(len(rows), most)}
	eachBin(len(rows), slices.IndexFunc(rows, func(r record.Second) bool { return r.T >= 0 }), t.BinS, func(a, b int) { t.add(rows[a:b]) })
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

// NewNetwork thins overlay statistics to at most most bins. It returns nil if there are no rows.
func NewNetwork(rows []record.NetworkSecond, most int) *Network {
	if len(rows) == 0 {
		return nil
	}
	n := &Network{BinS: binSize(len(rows), most)}
	eachBin(len(rows), slices.IndexFunc(rows, func(r record.NetworkSecond) bool { return r.T >= 0 }), n.BinS, func(a, b int) {
		mean, worst, gone := 0.0, 0.0, 0.0
		for _, r := range rows[a:b] {
			mean += r.Mean / float64(b-a)
			worst, gone = max(worst, r.Worst), max(gone, float64(r.Unreachable))
		}
		n.T, n.MeanMS, n.WorstMS, n.Unreachable = append(n.T, float64(rows[a].T)), append(n.MeanMS, mean), append(n.WorstMS, worst),
			append(n.Unreachable, gone)
	})
	return n
}

// Rates are several rates over time, in operations per second.
type Rates struct {
	BinS  int      `json:"bin_s"`
	T     Moments  `json:"t"`
	Names []string `json:"names"`
	Rate  []Values `json:"rate"` // as Names
}

// PoolRates returns the goodput of each workload, nil if there is only one.
func PoolRates(rows []record.PoolSecond, seconds []record.Second, most int) *Rates {
	return binRates(seconds, most, func(add func(t int64, name string, n int64)) {
		for _, r := range rows {
			add(r.T, r.Pool, r.OK)
		}
	})
}

// ErrorRates returns the rates of unsuccessful operations by outcome and class, such as "unknown
// timeout". It returns nil if all operations succeeded.
func ErrorRates(rows []record.ErrorSecond, seconds []record.Second, most int) *Rates {
	return binRates(seconds, most, func(add func(t int64, name string, n int64)) {
		for _, r := range rows {
			add(r.T, r.Outcome+" "+r.Class, r.Count)
		}
	})
}

func binRates(seconds []record.Second, most int, each func(add func(t int64, name string, n int64))) *Rates {
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
	out := &Rates{BinS: binSize(len(seconds), most), Names: slices.Sorted(maps.Keys(counts))}
	out.Rate = make([]Values, len(out.Names))
	measured := slices.IndexFunc(seconds, func(r record.Second) bool { return r.T >= 0 })
	eachBin(len(seconds), measured, out.BinS, func(a, b int) {
		out.T = append(out.T, float64(seconds[a].T))
		length := 0.0
		for i := a; i < b; i++ {
			length += seconds[i].Length
		}
		for k, name := range out.Names {
			sum := int64(0)
			for i := a; i < b; i++ {
				if i == a || seconds[i].T != seconds[i-1].T { // two rows of the same second share its count
					sum += counts[name][seconds[i].T]
				}
			}
			out.Rate[k] = append(out.Rate[k], float64(sum)/max(length, 1e-3))
		}
	})
	return out
}

// Band is an event as an interval of the timeline: while it was in force, or while its change
// settled. To is null if the interval lasts to the end.
type Band struct {
	Name string  `json:"name"`
	Kind string  `json:"kind"`
	Text string  `json:"text"`
	From Number  `json:"from"`
	To   *Number `json:"to,omitempty"`
	// Effect applies to Targets. Notes, scale changes and drifts have none.
	Effect  *record.Effect `json:"effect,omitempty"`
	Targets []string       `json:"targets,omitempty"`
	// Reverts marks the change that reverted a settled event. Its effect is the opposite.
	Reverts bool   `json:"reverts,omitempty"`
	State   string `json:"state,omitempty"`
	Error   string `json:"error,omitempty"`
	// CompleteS counts from From. Moved is in bytes.
	CompleteS *Number `json:"complete_s,omitempty"`
	Moved     int64   `json:"moved,omitempty"`
}

// EventBands returns the events of a trial, including notes and events that never began.
func EventBands(events []record.Event) (bands []Band) {
	for _, e := range events {
		b := Band{Name: cmp.Or(e.Name, e.Kind), Kind: e.Kind, Text: e.Message, From: Number(e.T), Effect: e.Effect, Targets: e.Targets,
			State: e.State, Error: e.Error}
		if !hasBegun(e.Apply) {
			if e.ID == 0 {
				b.To = &b.From
			}
			bands = append(bands, b)
			continue
		}
		first := b.step(e.Apply)
		if e.Effect == nil || !e.Effect.Settles {
			first.To = nil
			if e.Revert != nil && e.Revert.Completed != nil {
				first.To = newNumber(e.Revert.Completed.Seconds())
			}
		}
		bands = append(bands, first)
		if e.Effect != nil && e.Effect.Settles && hasBegun(e.Revert) {
			back := b.step(e.Revert)
			back.Reverts, back.Effect = true, e.Effect.Opposite()
			bands = append(bands, back)
		}
	}
	return bands
}

func hasBegun(s *record.Step) bool { return s != nil && s.Began != nil }

func (b Band) step(s *record.Step) Band {
	b.From, b.Moved = Number(s.Began.Seconds()), s.Bytes
	if s.Completed != nil {
		b.CompleteS = newNumber(s.Completed.Seconds() - s.Began.Seconds())
		b.To = newNumber(s.Completed.Seconds())
	}
	return b
}

func newNumber(v float64) *Number {
	n := Number(v)
	return &n
}

// KindSteal is the kind of a Band that marks CPU time stolen from the load driver.
const KindSteal = "stolen"

// StealBands returns the intervals in which CPU time was stolen from the load driver.
func StealBands(rows []record.Second) (bands []Band) {
	for rest := slices.Clone(rows); len(rest) > 0; {
		n := slices.IndexFunc(rest, func(r record.Second) bool { return r.Stolen == 0 })
		if n < 0 {
			n = len(rest)
		}
		if n == 0 {
			rest = rest[1:]
			continue
		}
		bands = append(bands, newStealBand(rest[:n]))
		rest = rest[n:]
	}
	return bands
}

func newStealBand(rows []record.Second) Band {
	marked, length := 0.0, 0.0
	for _, r := range rows {
		marked, length = marked+r.Stolen, length+r.Length
	}
	last := rows[len(rows)-1]
	return Band{
		Name: "CPU time stolen", Kind: KindSteal, Text: fmt.Sprintf("the driver could not run for %.2g of %.3g s", marked, length),
		From: Number(rows[0].T), To: newNumber(float64(last.T) + last.Length),
	}
}

const (
	// Significant digits in JSON. A chart's legend shows three.
	digits       = 5
	seriesDigits = 4
)

// Number is written to JSON with few digits, NaN and infinity as null.
type Number float64

func (n Number) MarshalJSON() ([]byte, error) { return appendNumber(nil, float64(n), digits), nil }

// Values is a list of numbers.
type Values []float64

// MarshalJSON writes a list, never null.
func (s Values) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 6*len(s)+2), '[')
	for i, v := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendNumber(b, v, seriesDigits)
	}
	return append(b, ']'), nil
}

// Moments are whole seconds, written with all digits.
type Moments []float64

// MarshalJSON writes a list, never null.
func (m Moments) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 6*len(m)+2), '[')
	for i, v := range m {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	return append(b, ']'), nil
}

func appendNumber(b []byte, v float64, digits int) []byte {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return append(b, "null"...)
	case v == math.Trunc(v) && math.Abs(v) < math.Pow10(digits):
		return strconv.AppendInt(b, int64(v), 10)
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	if err != nil {
		rounded = v
	}
	if a := math.Abs(rounded); a >= math.Pow10(digits) && a < 1e15 {
		return strconv.AppendInt(b, int64(rounded), 10)
	}
	return strconv.AppendFloat(b, rounded, 'g', -1, 64)
}
