package ycsb

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Status is one status line: figures of the time since the last one.
type Status struct {
	Label     string
	Now       time.Time
	Elapsed   time.Duration // since the start
	Total     int64         // operations since the start
	Current   float64       // operations a second since the last line
	Remaining time.Duration // 0 when nobody knows
	Series    []Series
}

// String is the line as YCSB writes it to stderr, without an end of line.
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

// formatShort has up to two decimals.
func formatShort(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

// formatRemaining is the two largest units, rounded up to a second.
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
