package ycsb

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Report is a finished drive as YCSB's text output has it.
type Report struct {
	RunTime time.Duration
	OK      int64 // operations that ended ok: what the throughput counts
	Ended   int64 // and with those that failed or are unknown
	// Figures are added to OVERALL.
	Figures []Figure
	Series  []Series
	// Percentiles to print, 0..100.
	Percentiles []float64
}

// Figure is one line of OVERALL.
type Figure struct {
	Name  string
	Value float64
}

// Series is one kind of operation: "READ", "READ-FAILED", "Intended-READ", "VERIFY".
type Series struct {
	Name    string
	Latency *hdrhistogram.Histogram // in microseconds
	// Returns counts operations by status name; not in series of failed ones.
	Returns map[string]int64
}

// DefaultPercentiles are what programs that read YCSB's output expect.
func DefaultPercentiles() []float64 { return []float64{50, 95, 99} }

// WriteText writes YCSB's text output: "[SERIES], measure, value" a line. Unlike YCSB's,
// the throughput leaves out operations that did not end ok.
func (r Report) WriteText(out io.Writer) error {
	w := bufio.NewWriter(out)
	line := func(series, measure, value string) { fmt.Fprintf(w, "[%s], %s, %s\n", series, measure, value) }
	line("OVERALL", "RunTime(ms)", strconv.FormatInt(r.RunTime.Milliseconds(), 10))
	line("OVERALL", "Throughput(ops/sec)", javaDouble(perSecond(r.OK, r.RunTime)))
	line("OVERALL", "Ended(ops/sec)", javaDouble(perSecond(r.Ended, r.RunTime)))
	for _, f := range r.Figures {
		line("OVERALL", f.Name, javaDouble(f.Value))
	}
	for _, s := range r.Series {
		h := s.Latency
		line(s.Name, "Operations", strconv.FormatInt(h.TotalCount(), 10))
		line(s.Name, "AverageLatency(us)", javaDouble(h.Mean()))
		line(s.Name, "MinLatency(us)", strconv.FormatInt(h.Min(), 10))
		line(s.Name, "MaxLatency(us)", strconv.FormatInt(h.Max(), 10))
		for _, p := range r.Percentiles {
			line(s.Name, ordinal(p)+"PercentileLatency(us)", strconv.FormatInt(h.ValueAtPercentile(p), 10))
		}
		for _, name := range slices.Sorted(maps.Keys(s.Returns)) {
			line(s.Name, "Return="+name, strconv.FormatInt(s.Returns[name], 10))
		}
	}
	return w.Flush()
}

func perSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// javaDouble always has a point, as Java prints a double.
func javaDouble(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.ContainsAny(s, ".nN") {
		s += ".0"
	}
	return s
}

// ordinal is 1st, 2nd, 95th, 99.9.
func ordinal(p float64) string {
	if p != math.Trunc(p) {
		return strconv.FormatFloat(p, 'f', -1, 64)
	}
	n := int(p)
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}
