package link_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"skerry/internal/link"
)

func TestDefaultQueue(t *testing.T) {
	tests := []struct {
		name      string
		bandwidth int64
		latency   time.Duration
		want      int64
	}{
		{"no limit", 0, time.Second, 0},
		{"slow link holds two super-packets", 1e6, time.Millisecond, 128 << 10},
		{"near link holds 50 ms", 1e9, 0, 6_250_000},
		{"far link holds a round trip", 1e9, 100 * time.Millisecond, 25_000_000},
		{"no overflow", 1e14, time.Minute, 15e14},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := link.DefaultQueue(tt.bandwidth, tt.latency); got != tt.want {
				t.Errorf("DefaultQueue(%d, %v) = %d, want %d", tt.bandwidth, tt.latency, got, tt.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	good := link.Spec{ID: "a~b", A: link.End{Netns: "/a", Device: "a0"}, B: link.End{Netns: "/b", Device: "b0"}}
	tests := []struct {
		name  string
		spoil func(*link.Spec)
	}{
		{"no ID", func(s *link.Spec) { s.ID = "" }},
		{"no namespace", func(s *link.Spec) { s.B.Netns = "" }},
		{"long device", func(s *link.Spec) { s.A.Device = "abcdefghijklmnop" }},
		{"tiny MTU", func(s *link.Spec) { s.MTU = 20 }},
		{"loss over 1", func(s *link.Spec) { s.AB.Loss = 1.5 }},
		{"loss not a number", func(s *link.Spec) { s.AB.Loss = math.NaN() }},
		{"burst below 0", func(s *link.Spec) { s.BA.Burst = &link.GilbertElliott{P: -1} }},
		{"negative latency", func(s *link.Spec) { s.BA.Latency = -1 }},
		{"negative jitter", func(s *link.Spec) { s.BA.Jitter = -1 }},
		{"negative bandwidth", func(s *link.Spec) { s.AB.Bandwidth = -1 }},
		{"negative queue", func(s *link.Spec) { s.AB.Queue = -1 }},
		{"jitter larger than the latency", func(s *link.Spec) {
			s.AB = link.Quality{Latency: 5 * time.Millisecond, Jitter: 20 * time.Millisecond, Distribution: link.Uniform}
		}},
		{"strange distribution", func(s *link.Spec) { s.AB.Distribution = "gauss" }},
	}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bad := good
			tt.spoil(&bad)
			if err := bad.Validate(); !errors.Is(err, link.ErrInvalid) {
				t.Errorf("Validate() = %v, want ErrInvalid", err)
			}
		})
	}
}

func TestJitterTable(t *testing.T) {
	tests := []struct {
		dist      link.Distribution
		deviation float64
		skewed    bool
	}{
		{"", 1, false},
		{link.Normal, 1, false},
		{link.Uniform, 1 / math.Sqrt(3), false},
		{link.Pareto, 1, true},
		{link.ParetoNormal, 1, true},
	}
	for _, tt := range tests {
		t.Run(string(tt.dist), func(t *testing.T) {
			table := tt.dist.Table(4096)
			mean, deviation := stat.PopMeanStdDev(table, nil)
			if math.Abs(mean) > 1e-3 || math.Abs(deviation-tt.deviation) > 1e-3 {
				t.Errorf("mean %.4f, deviation %.4f; want 0 and %.4f", mean, deviation, tt.deviation)
			}
			if skew := stat.Skew(table, nil); (skew > 0.5) != tt.skewed {
				t.Errorf("skew %.3f, want skewed to the right: %v", skew, tt.skewed)
			}
			for i, x := range table {
				if math.Abs(x) > link.JitterReach || i > 0 && x < table[i-1] {
					t.Fatalf("value %d of the table is %v: out of range or out of order", i, x)
				}
			}
		})
	}
}

// The maximum jitter of a latency changes the mean delay by at most 1 % of the jitter.
func TestMaxJitterKeepsMean(t *testing.T) {
	const latency = time.Second
	for _, d := range []link.Distribution{"", link.Uniform, link.Normal, link.Pareto, link.ParetoNormal} {
		jitter := link.Quality{Latency: latency, Distribution: d}.MaxJitter().Seconds()
		var sum float64
		table := d.Table(4096)
		for _, x := range table {
			sum += max(0, 1+x*jitter)
		}
		if moved := sum/float64(len(table)) - 1; moved > 0.01*jitter {
			t.Errorf("%q: cutting off negative delays raises the mean by %.4f of the jitter", d, moved/jitter)
		}
	}
}
