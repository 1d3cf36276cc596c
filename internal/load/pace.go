package load

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"skerry/internal/load/ycsb"
)

// pace hands out operations and when each is meant to be sent. One counter serves all
// workers, so that none runs dry before the others.
type pace interface {
	next() slot
	// issued is how many numbers were handed out.
	issued() int64
}

// slot is the number of an operation and when it is due, since the start; negative means as
// soon as a worker is free.
type slot struct {
	n   int64
	due time.Duration
}

// newPace begins a pace. seed is that of the arrivals.
func newPace(s Spec, seed uint64) pace {
	switch {
	case s.Target == 0:
		return new(unpaced)
	case s.Arrival == Poisson:
		return &poisson{seed: seed, mean: 1e9 / s.Target}
	}
	return &constant{gap: 1e9 / s.Target}
}

type unpaced struct{ n atomic.Int64 }

func (p *unpaced) next() slot    { return slot{p.n.Add(1) - 1, -1} }
func (p *unpaced) issued() int64 { return p.n.Load() }

// constant spaces operations evenly:
//
//	due(n) = n x gap
type constant struct {
	n   atomic.Int64
	gap float64 // ns
}

func (p *constant) next() slot {
	n := p.n.Add(1) - 1
	return slot{n, time.Duration(float64(n) * p.gap)}
}
func (p *constant) issued() int64 { return p.n.Load() }

// poisson spaces operations by independent exponential gaps:
//
//	due(n) = due(n-1) - mean x ln(1 - u(n)),  u uniform in [0, 1)
type poisson struct {
	seed uint64
	mean float64 // ns

	mu  sync.Mutex
	n   int64
	due float64
}

func (p *poisson) next() slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.n
	p.n++
	r := ycsb.NewRand(p.seed, uint64(n))
	p.due -= p.mean * math.Log(1-r.Float64())
	return slot{n, time.Duration(p.due)}
}

func (p *poisson) issued() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}
