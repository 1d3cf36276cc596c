package linkcheck

import (
	"math/rand/v2"
	"testing"
	"time"

	"skerry/internal/link"
	"skerry/internal/record"
)

// simulate is a measurement in which the jitter of a direction changes every 80 ms; draw returns the spread of the
// packets for a value of the jitter, in ms.
func simulate(seed uint64, seconds int, q link.Quality, packets func(window int) int, draw func(x float64) float64) *record.Jitter {
	r := rand.New(rand.NewPCG(4, seed))
	table := q.Distribution.Table(512)
	deviation := 1.0
	if q.Distribution == link.Uniform {
		deviation = 0.5773502691896258
	}
	var c Checker
	const windows = 12 // in a second
	for t := range seconds {
		c.Add(second(int64(t), 0, func(a *link.Account) {
			for w := range windows {
				spread := draw(ms(q.Jitter) * table[r.IntN(len(table))])
				n := uint64(packets(t*windows + w))
				a.Packets += n
				a.Spread += time.Duration(float64(n) * spread * float64(time.Millisecond))
				a.Squares += float64(n) * spread * spread * 1e6
				a.SetSquares += float64(n) * ms(q.Jitter) * ms(q.Jitter) * deviation * deviation * 1e6
			}
		}, q))
	}
	return c.Result().Jitter
}

func TestJitter(t *testing.T) {
	steady := func(int) int { return 80 }
	right := func(x float64) float64 { return x }
	normal := link.Quality{Latency: 50 * time.Millisecond, Jitter: 5 * time.Millisecond}
	of := func(d link.Distribution) link.Quality {
		q := normal
		q.Distribution = d
		return q
	}
	tests := map[string]struct {
		q       link.Quality
		seconds int
		packets func(int) int
		draw    func(float64) float64
		want    string // "off", "right", or "" if not judged
	}{
		"normal":       {normal, 30, steady, right, "right"},
		"uniform":      {of(link.Uniform), 30, steady, right, "right"},
		"pareto":       {of(link.Pareto), 30, steady, right, "right"},
		"paretonormal": {of(link.ParetoNormal), 30, steady, right, "right"},
		"an hour":      {normal, 3600, steady, right, "right"},
		"a burst every two seconds": {normal, 60, func(w int) int {
			if w%24 == 0 {
				return 500
			}
			return 0
		}, right, "right"},
		"varying number of packets": {normal, 30, func(w int) int { return 1 + 500*(w%7/6) }, right, "right"},
		"late by 0.1 ms":            {normal, 30, steady, func(x float64) float64 { return x + 0.1 }, "right"},
		// Independent draws of packets that may not overtake: mean 54.6 and SD 3.2 ms instead of 50 and 5 (issue 47, fault 2).
		"a mean that follows the load": {normal, 30, steady, func(x float64) float64 { return 4.6 + 0.64*x }, "off"},
		"half the spread":              {normal, 60, steady, func(x float64) float64 { return x / 2 }, "off"},
		"twice the spread":             {normal, 60, steady, func(x float64) float64 { return 2 * x }, "off"},
		"no spread":                    {normal, 60, steady, func(float64) float64 { return 0 }, "off"},
		"too short":                    {normal, 8, steady, right, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := simulate(1, tt.seconds, tt.q, tt.packets, tt.draw)
			switch {
			case got == nil && tt.want == "":
			case got == nil || tt.want == "":
				t.Errorf("got %+v, want %q", got, tt.want)
			case JitterExceeded(*got) != (tt.want == "off"):
				t.Errorf("got %+v, want %s", *got, tt.want)
			}
		})
	}
}

// A second with a change of the settings is not used for the jitter, nor is the next one.
func TestJitterAcrossChanges(t *testing.T) {
	var c Checker
	q := link.Quality{Latency: 50 * time.Millisecond, Jitter: 5 * time.Millisecond}
	for i := range int64(60) {
		c.Add(second(i, 100, func(a *link.Account) {
			a.Spread, a.Squares, a.SetSquares = 100*time.Second, 1e12, 100*25e6
			a.Changes = uint64(1 - i%2)
		}, q))
	}
	if j := c.Result().Jitter; j != nil {
		t.Errorf("judged %+v", *j)
	}
}

// Correct jitter also passes with rare bursts of very different sizes.
func TestCorrectJitterPasses(t *testing.T) {
	for _, d := range []link.Distribution{link.Normal, link.Uniform, link.Pareto, link.ParetoNormal} {
		q := link.Quality{Latency: 50 * time.Millisecond, Jitter: 5 * time.Millisecond, Distribution: d}
		off := 0
		for seed := range uint64(200) {
			r := rand.New(rand.NewPCG(seed, 1))
			got := simulate(seed, 60, q, func(int) int {
				if r.IntN(10) > 0 {
					return 0
				}
				return 1 + int(400*r.ExpFloat64())
			}, func(x float64) float64 { return x })
			if got != nil && JitterExceeded(*got) {
				off++
			}
		}
		if off > 1 {
			t.Errorf("%s: %d of 200 are off", d, off)
		}
	}
}
