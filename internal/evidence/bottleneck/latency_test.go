package bottleneck

import (
	"math"
	"strings"
	"testing"
)

// steady is a measurement of ten equal seconds.
func steady(s Second) Waiting {
	e := Waiting{RoundTripS: 0.001, FarthestS: 0.005}
	for range 10 {
		e.Seconds = append(e.Seconds, s)
	}
	return e
}

// far is a measurement of three members of etcd, 5 ms apart, at 200 operations/s on an idle machine.
var far = Second{Operations: 200, LatencyS: 0.008, Servers: 0.02, Client: 0.01, Disk: 0.04}

func TestExplainLatency(t *testing.T) {
	p99 := func(latency float64) Percentile { return Percentile{Quantile: 0.99, LatencyS: latency} }
	p50 := func(latency float64) Percentile { return Percentile{Quantile: 0.5, LatencyS: latency} }
	change := func(f func(*Second)) Second { s := far; f(&s); return s }
	slowDisk := change(func(s *Second) { s.Operations, s.LatencyS, s.Disk, s.Servers = 40, 0.41, 0.9, 0.3 })
	for name, tt := range map[string]struct {
		second    Second
		of        Percentile
		change    func(*Waiting)
		by        string
		ofMachine bool
		text      string
	}{
		"median of a quiet machine": {far, p50(0.009), nil, Distance, false, "9 ms: round trips 9"},
		"far clients":               {far, p99(0.06), func(e *Waiting) { e.RoundTripS = 0.05 }, Distance, false, ""},
		"tail of the database":      {far, p99(0.04), nil, Database, false, "40 ms: round trips 11"},
		"servers next to other programs": {change(func(s *Second) { s.LatencyS, s.Servers = 0.0134, 0.9 }), p99(0.087), nil, Machine, true,
			"servers waited for a processor 55.5"},
		"servers with saturated processors": {change(func(s *Second) { s.LatencyS, s.Servers = 0.036, 1 }), p99(0.286), nil, Machine, true, ""},
		"disk of the machine": {slowDisk, p50(0.408), nil, Disk, true,
			"408 ms: round trips 11, servers waited for a processor 123, servers waited for the disk 369"},
		"disk slowed by the experiment":  {slowDisk, p99(0.853), func(e *Waiting) { e.SlowDisk = true }, Disk, false, ""},
		"few operations and a slow disk": {Second{Operations: 10, LatencyS: 0.03, Disk: 0.2}, p50(0.03), nil, Disk, true, ""},
		"quota":                          {change(func(s *Second) { s.LatencyS, s.Quota = 0.05, 0.8 }), p99(0.2), nil, Node, false, ""},
		"the driver was late": {far, Percentile{Quantile: 0.99, LatencyS: 0.04, LateS: 0.02}, nil, Client, true,
			"the driver waited for a processor 20"},
		"the driver read answers late": {change(func(s *Second) { s.LatencyS, s.Client = 0.02, 0.6 }), p99(0.06), nil, Client, true, ""},
		"a link's queue": {far, Percentile{Quantile: 0.99, LatencyS: 0.3, QueueS: 0.2, Link: "a~b"}, nil, Queue, false,
			"the queue of a~b 200"},
		"no measurement": {Second{}, p99(0.1), func(e *Waiting) { *e = Waiting{Unknown: []string{"the disk"}} }, Database,
			false, "100 ms: round trips 0"},
	} {
		e := steady(tt.second)
		if tt.change != nil {
			tt.change(&e)
		}
		c := ExplainLatency(e, tt.of)
		if c.By != tt.by || c.OfMachine != tt.ofMachine || !strings.Contains(c.Text, tt.text) {
			t.Errorf("%s: %+v; want %s, of the machine %v, %q", name, c, tt.by, tt.ofMachine, tt.text)
		}
	}
	if c := ExplainLatency(Waiting{Unknown: []string{"the disk"}}, p99(1)); len(c.Unknown) != 1 {
		t.Errorf("unknown parts are reported: %+v", c)
	}
}

// A wait in a tenth of the seconds affects the tail and not the median.
func TestTailFromWaitingSeconds(t *testing.T) {
	e := steady(far)
	e.Seconds[3] = Second{Operations: 150, LatencyS: 0.15, Servers: 1}
	if c := ExplainLatency(e, Percentile{Quantile: 0.99, LatencyS: 0.3}); c.By != Machine {
		t.Errorf("the tail: %+v", c)
	}
	if c := ExplainLatency(e, Percentile{Quantile: 0.5, LatencyS: 0.02}); c.By != Database {
		t.Errorf("the median: %+v", c)
	}
}

// Equal waits give the larger median, exponential ones the larger tail.
func TestWaitQuantileIsLarger(t *testing.T) {
	servers := func(s Second) float64 { return s.Servers }
	e := steady(Second{Operations: 100, LatencyS: 0.1, Servers: 0.5}) // a mean of 50 ms
	for q, want := range map[float64]float64{0.5: 0.05, 0.99: 0.05 * math.Log(100)} {
		if got := e.waitQuantile(q, servers); math.Abs(got-want) > 1e-9 {
			t.Errorf("quantile %g: %g, want %g", q, got, want)
		}
	}
	if got := e.waitQuantile(0.99, func(Second) float64 { return 0 }); got != 0 {
		t.Errorf("without a wait: %g", got)
	}
	e.Seconds = append(e.Seconds, Second{Operations: 1000}) // most operations do not wait
	if got := e.waitQuantile(0.4, servers); got > 1e-9 {
		t.Errorf("quantile below the waiting share: %g", got)
	}
}
