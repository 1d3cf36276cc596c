package netprofile

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/link"
	"skerry/internal/topology"
)

const every = 100 * time.Millisecond

// course returns round trips of two directions with a jitter each, in ms; one in lost is missing.
func course(n int, rtt, jitter float64, d link.Distribution, lost int) []time.Duration {
	r := rand.New(rand.NewPCG(1, 2))
	table := d.Table(1000)
	all := make([]time.Duration, n)
	for i := range all {
		if lost == 0 || i%lost != 0 {
			all[i] = time.Duration((rtt + jitter*(table[r.IntN(1000)]+table[r.IntN(1000)])) * float64(time.Millisecond))
		}
	}
	return all
}

// The measured distribution of a link with jitter is converted into that jitter.
func TestShape(t *testing.T) {
	for _, d := range []link.Distribution{link.Normal, link.Uniform, link.Pareto, link.ParetoNormal} {
		p := PairProfile{From: "a", To: "b"}
		p.AddSamples(course(6000, 40, 2, d, 50))
		s := p.Shape
		if math.Abs(s.RTTMS-40) > 0.2 || math.Abs(s.JitterMS-2) > 0.2 || math.Abs(s.Loss-0.01) > 0.001 {
			t.Errorf("%s: %+v", d, s)
		}
		if heavy := d == link.Pareto || d == link.ParetoNormal; heavy != (s.Distribution == link.Pareto || s.Distribution == link.ParetoNormal) {
			t.Errorf("%s was identified as %s", d, s.Distribution)
		}
		if p.Sent != 6000 || p.Lost != 120 || p.RTT.Min > p.RTT.P5 || p.RTT.P99 > p.RTT.Max {
			t.Errorf("%s: %+v", d, p)
		}
	}
	even := PairProfile{}
	if even.AddSamples(course(100, 20, 0, link.Normal, 0)); even.Shape.JitterMS != 0 || even.Shape.RTTMS != 20 {
		t.Errorf("without a jitter: %+v", even.Shape)
	}
	none := PairProfile{}
	if none.AddSamples(make([]time.Duration, 5)); none.Lost != 5 || none.Shape.RTTMS != 0 {
		t.Errorf("without an answer: %+v", none)
	}
}

// exampleProfile has three machines at two sites, and one without measurements.
func exampleProfile() Profile {
	p := Profile{Began: time.Unix(0, 0), Seconds: 20, EveryMS: 100, Machines: []MachineProfile{
		{Name: "o1", Site: "Oslo"}, {Name: "gone", Problem: "gone: it cannot be reached"}, {Name: "o2", Site: "Oslo"}, {Name: "pune.example"},
	}, Pairs: []PairProfile{{From: "o1", To: "o2"}, {From: "o1", To: "pune.example", There: 941_234_567, Back: 87_654_321}, {From: "o2", To: "pune.example"}}}
	p.Pairs[0].AddSamples(course(200, 0.4, 0, link.Normal, 0))
	p.Pairs[1].AddSamples(course(200, 100, 1, link.Normal, 20))
	p.Pairs[2].AddSamples(course(200, 102, 1, link.Normal, 0))
	return p
}

// A topology contains the measured values unchanged.
func TestTopology(t *testing.T) {
	p := exampleProfile()
	text, err := p.Topology()
	if err != nil {
		t.Fatal(err)
	}
	root, err := strict.Parse("measured.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	var s topology.Spec
	if ps := strict.Decode(root, &s, ""); len(ps) > 0 {
		t.Fatal(ps)
	}
	cloud, err := s.Build(".", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(cloud.Nodes) != 3 || len(cloud.Sites) != 2 || len(cloud.Links) != 3 {
		t.Fatalf("%d nodes at %d sites with %d links, of\n%s", len(cloud.Nodes), len(cloud.Sites), len(cloud.Links), text)
	}
	for _, l := range cloud.Links {
		rtt := l.AB.Latency + l.BA.Latency
		switch l.ID {
		case "Oslo-1~Oslo-2":
			if rtt != 400*time.Microsecond || l.AB.Jitter != 0 {
				t.Errorf("%+v", l)
			}
		case "Oslo-1~pune.example":
			if (rtt-100*time.Millisecond).Abs() > time.Millisecond || l.AB.Jitter == 0 || l.AB.Loss == 0 || l.AB.Bandwidth != 941e6 || l.BA.Bandwidth != 87_700_000 {
				t.Errorf("%+v", l)
			}
		}
	}
	half, some := topology.LossSpec{Random: 0.5}, unit.Duration(9*time.Millisecond)
	s.Defaults.Loss, s.Defaults.Jitter = &half, &some
	if cloud, err = s.Build(".", nil); err != nil || cloud.Links[0].AB.Loss != 0 || cloud.Links[0].AB.Jitter != 0 {
		t.Errorf("defaults next to measured links: %+v, %v", cloud.Links, err)
	}
	p.Pairs[2] = PairProfile{From: "o2", To: "pune.example", Sent: 3, Lost: 3, Problem: "no answer"}
	if text, err := p.Topology(); err != nil || !strings.Contains(string(text), "connect: none") || p.IsComplete() {
		t.Errorf("with an unanswered pair: %v\n%s", err, text)
	}
	p.Pairs = p.Pairs[2:]
	if _, err := p.Topology(); !errors.Is(err, ErrNoData) {
		t.Errorf("without any answer: %v", err)
	}
	if _, err := p.Trace(); !errors.Is(err, ErrNoData) {
		t.Errorf("without any answer: %v", err)
	}
	var b strings.Builder
	if err := p.Write(&b); err != nil || !strings.Contains(b.String(), "gone: it cannot be reached") || !strings.Contains(b.String(), "3 of 3") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// A trace has a row per direction for each change, and the topology's jitter is the remaining variation.
func TestTrace(t *testing.T) {
	p := Profile{EveryMS: 100, Machines: []MachineProfile{{Name: "a"}, {Name: "b"}}, Pairs: []PairProfile{{From: "a", To: "b"}}}
	var way []time.Duration
	for range 20 {
		way = append(way, 20*time.Millisecond)
	}
	for range 10 {
		way = append(way, 60*time.Millisecond)
	}
	way = append(way, make([]time.Duration, 10)...) // no answers
	p.Pairs[0].AddSamples(way)
	p.Pairs[0].IsSteady(every)
	text, err := p.Trace()
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(text), "time_s")
	want := ",from,to,latency_ms,loss\n0,a,b,10.000,0%\n0,b,a,10.000,0%\n2,a,b,30.000,0%\n2,b,a,30.000,0%\n3,a,b,,100%\n3,b,a,,100%\n"
	if rows != want {
		t.Errorf("got\n%s\nwant\n%s", rows, want)
	}
	if s := p.Pairs[0].Shape; s.JitterMS != 0 || s.Loss == 0 {
		t.Errorf("remaining variation: %+v", s)
	}
}

func TestFitLine(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	x, y := make([]float64, 100), make([]float64, 100)
	for i := range x {
		x[i] = 50 + r.NormFloat64()
		y[i] = 3 + 2*x[i] + r.NormFloat64()
	}
	a, b := fitLine(x, y)
	wantA, wantB := stat.LinearRegression(x, y, nil, false)
	if math.Abs(a-wantA) > 1e-9*math.Abs(wantA) || math.Abs(b-wantB) > 1e-9*math.Abs(wantB) {
		t.Errorf("line %g + %g x, want %g + %g x", a, b, wantA, wantB)
	}
}
