package ycsb

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
)

func histogram(values ...int64) *hdrhistogram.Histogram {
	h := hdrhistogram.New(1, 3_600_000_000, 3)
	for _, v := range values {
		_ = h.RecordValue(v)
	}
	return h
}

// parseText is a strict parser of YCSB's output.
func parseText(t *testing.T, r io.Reader) map[string]map[string]float64 {
	t.Helper()
	form := regexp.MustCompile(`^\[([A-Z][A-Za-z-]*)\], ([A-Za-z0-9.()/=_]+), (-?[0-9]+(?:\.[0-9]+)?)$`)
	out := map[string]map[string]float64{}
	for s := bufio.NewScanner(r); s.Scan(); {
		m := form.FindStringSubmatch(s.Text())
		if m == nil {
			t.Fatalf("not a line of YCSB output: %q", s.Text())
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		if out[m[1]] == nil {
			out[m[1]] = map[string]float64{}
		}
		out[m[1]][m[2]] = v
	}
	return out
}

func TestWriteText(t *testing.T) {
	r := Report{
		RunTime: 2 * time.Second, OK: 3, Ended: 4,
		Figures:     []Figure{{"Dropped", 7}},
		Percentiles: []float64{50, 95, 99, 99.9},
		Series: []Series{
			{"READ", histogram(100, 200, 300), map[string]int64{"OK": 3, "NOT_FOUND": 1}},
			{"READ-FAILED", histogram(1000), nil},
			{"Intended-READ", histogram(), nil},
		},
	}
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if first := strings.SplitN(b.String(), "\n", 3); first[0] != "[OVERALL], RunTime(ms), 2000" ||
		first[1] != "[OVERALL], Throughput(ops/sec), 1.5" {
		t.Errorf("first line is %q", first[:2])
	}
	got := parseText(t, &b)
	want := map[string]map[string]float64{
		"OVERALL": {"RunTime(ms)": 2000, "Throughput(ops/sec)": 1.5, "Ended(ops/sec)": 2, "Dropped": 7},
		"READ": {"Operations": 3, "AverageLatency(us)": 200, "MinLatency(us)": 100, "MaxLatency(us)": 300, "50thPercentileLatency(us)": 200,
			"95thPercentileLatency(us)": 300, "99thPercentileLatency(us)": 300, "99.9PercentileLatency(us)": 300, "Return=OK": 3,
			"Return=NOT_FOUND": 1},
		"READ-FAILED": {"Operations": 1, "AverageLatency(us)": 1000, "MinLatency(us)": 1000, "MaxLatency(us)": 1000,
			"50thPercentileLatency(us)": 1000,
			"95thPercentileLatency(us)": 1000, "99thPercentileLatency(us)": 1000, "99.9PercentileLatency(us)": 1000},
		"Intended-READ": {"Operations": 0, "AverageLatency(us)": 0, "MinLatency(us)": 0, "MaxLatency(us)": 0, "50thPercentileLatency(us)": 0,
			"95thPercentileLatency(us)": 0, "99thPercentileLatency(us)": 0, "99.9PercentileLatency(us)": 0},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestOrdinals(t *testing.T) {
	for p, want := range map[float64]string{1: "1st", 2: "2nd", 3: "3rd", 11: "11th", 12: "12th", 13: "13th", 50: "50th",
		91: "91st", 99.9: "99.9"} {
		if got := ordinal(p); got != want {
			t.Errorf("ordinal of %v: %s, want %s", p, got, want)
		}
	}
}

func TestStatusLine(t *testing.T) {
	s := Status{
		Now: time.Date(2026, 4, 1, 12, 30, 5, 7e6, time.UTC), Elapsed: 10*time.Second + 900*time.Millisecond,
		Total: 5000, Current: 498.765, Remaining: 3700 * time.Second,
		Series: []Series{{Name: "READ", Latency: histogram(100, 200)}},
	}
	want := "2026-04-01 12:30:05:007 10 sec: 5000 operations; 498.77 current ops/sec; est completion in 1 hour 1 minute " +
		"[READ: Count=2, Max=200, Min=100, Avg=150, 90=200, 99=200, 99.9=200, 99.99=200]"
	if got := s.String(); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if got := (Status{Now: s.Now}).String(); got != "2026-04-01 12:30:05:007 0 sec: 0 operations;" {
		t.Errorf("at the start: %q", got)
	}
}

func TestRemaining(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Millisecond: "1 second", 59 * time.Second: "59 seconds", 61 * time.Second: "1 minute 1 second",
		26 * time.Hour: "1 day 2 hours", 2 * time.Hour: "2 hours",
	} {
		if got := formatRemaining(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestHDRLog(t *testing.T) {
	var b bytes.Buffer
	start := time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC)
	l, err := NewHDRLog(&b, "READ", start)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		h := histogram(100, int64(200*(i+1)))
		if err := l.Interval(start.Add(time.Duration(i)*time.Second), time.Second, h); err != nil {
			t.Fatal(err)
		}
	}
	// Java's HistogramLogReader expects comments, a legend, then lines of start, length, maximum
	// and histogram, relative to the start time.
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 7 || !strings.HasPrefix(lines[1], "#[Histogram log format version 1.3]") ||
		!strings.HasPrefix(lines[2], "#[StartTime: 1775044800") || !strings.HasPrefix(lines[3], `"StartTimestamp"`) ||
		!strings.HasPrefix(lines[5], "1.000000,1.000000,") || !strings.Contains(lines[5], ",HISTFAAA") {
		t.Errorf("the log is\n%s", b.String())
	}
	r := hdrhistogram.NewHistogramLogReader(&b)
	for i := range int64(3) {
		h, err := r.NextIntervalHistogram()
		if err != nil || h == nil {
			t.Fatalf("interval %d: %v", i, err)
		}
		if h.TotalCount() != 2 || h.Max() != 200*(i+1) {
			t.Errorf("interval %d: %d values up to %d", i, h.TotalCount(), h.Max())
		}
	}
}
