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

// Report is the content of YCSB's text output.
type Report struct {
	RunTime time.Duration
	OK      int64 // successful operations, counted as throughput
	Ended   int64 // successful, failed and unknown operations
	// Figures are additional lines of OVERALL.
	Figures []Figure
	Series  []Series
	// Percentiles to print, 0 to 100.
	Percentiles []float64
}

type Figure struct {
	Name  string
	Value float64
}

// Series is one kind of operation: "READ", "READ-FAILED", "Intended-READ", "VERIFY".
type Series struct {
	Name    string
	Latency *hdrhistogram.Histogram // in microseconds
	// Returns counts operations by status name. It is nil in series of failed operations.
	Returns map[string]int64
}

// DefaultPercentiles are those that programs expect in YCSB's output.
func DefaultPercentiles() []float64 { return []float64{50, 95, 99} }

// WriteText writes YCSB's text output, one "[SERIES], measure, value" per line. Unlike YCSB's, the
// throughput counts successful operations only.
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

// javaDouble formats a number with a decimal point, as Java does.
func javaDouble(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.ContainsAny(s, ".nN") {
		s += ".0"
	}
	return s
}

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

// Status is a status line with figures since the previous line.
type Status struct {
	Label     string
	Now       time.Time
	Elapsed   time.Duration // since the start
	Total     int64         // operations since the start
	Current   float64       // operations per second since the previous line
	Remaining time.Duration // 0 if unknown
	Series    []Series
}

// String returns the line in YCSB's format, without a line end.
func (s Status) String() string {
	var b strings.Builder
	now := s.Now.Format("2006-01-02 15:04:05.000")
	fmt.Fprintf(&b, "%s%s %d sec: %d operations; ", s.Label, strings.Replace(now, ".", ":", 1), int(s.Elapsed.Seconds()), s.Total)
	if s.Total > 0 {
		fmt.Fprintf(&b, "%s current ops/sec; ", formatShort(s.Current))
	}
	if s.Remaining > 0 {
		fmt.Fprintf(&b, "est completion in %s ", formatRemaining(s.Remaining))
	}
	for _, x := range s.Series {
		h := x.Latency
		fmt.Fprintf(&b, "[%s: Count=%d, Max=%d, Min=%d, Avg=%s, 90=%d, 99=%d, 99.9=%d, 99.99=%d] ", x.Name, h.TotalCount(), h.Max(), h.Min(),
			formatShort(h.Mean()), h.ValueAtPercentile(90), h.ValueAtPercentile(99), h.ValueAtPercentile(99.9), h.ValueAtPercentile(99.99))
	}
	return strings.TrimRight(b.String(), " ")
}

func formatShort(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

func formatRemaining(d time.Duration) string {
	seconds := int64(math.Ceil(d.Seconds()))
	var parts []string
	for _, u := range []struct {
		name string
		size int64
	}{{"day", 86400}, {"hour", 3600}, {"minute", 60}, {"second", 1}} {
		n := seconds / u.size
		seconds %= u.size
		if n == 0 || len(parts) == 2 {
			continue
		}
		name := u.name
		if n > 1 {
			name += "s"
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, name))
	}
	return strings.Join(parts, " ")
}

// HDRLog writes a HdrHistogram interval log (format 1.3, compressed V2 histograms), one line per
// interval.
type HDRLog struct {
	w    *hdrhistogram.HistogramLogWriter
	name string
}

// NewHDRLog writes the header of a log for a series that begins at start.
func NewHDRLog(out io.Writer, series string, start time.Time) (*HDRLog, error) {
	l := &HDRLog{hdrhistogram.NewHistogramLogWriter(out), series}
	l.w.SetBaseTime(start.UnixMilli())
	for _, step := range []func() error{
		func() error { return l.w.OutputComment("[Logging for: " + series + ", in microseconds]") },
		l.w.OutputLogFormatVersion,
		func() error { return l.w.OutputStartTime(start.UnixMilli()) },
		l.w.OutputLegend,
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("write the histogram log of %s: %w", series, err)
		}
	}
	return l, nil
}

// Interval appends one interval. It sets the histogram's times.
func (l *HDRLog) Interval(start time.Time, length time.Duration, h *hdrhistogram.Histogram) error {
	h.SetStartTimeMs(start.UnixMilli())
	h.SetEndTimeMs(start.Add(length).UnixMilli())
	if err := l.w.OutputIntervalHistogram(h); err != nil {
		return fmt.Errorf("write the histogram log of %s: %w", l.name, err)
	}
	return nil
}
