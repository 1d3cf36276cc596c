package shaper

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"skerry/internal/link"
)

// reference is a link written directly from its definition, without code of the engine: a queue of packets, drained by
// a fluid at the current rate, followed by a pipe with the current latency. It computes with fractions and never
// rounds.
type reference struct {
	now       int64
	rate      int64 // bit/s; 0 is no limit
	latency   int64
	limit     int64
	queue     []referencePacket
	offset    *big.Rat // time from now to the departure of the head, while the queue is not empty
	delivered []delivery
}

type referencePacket struct {
	number int
	size   int64
	bits   *big.Rat // left to transmit
}

type delivery struct {
	number int
	due    int64
}

// run advances the time.
func (r *reference) run(until int64) {
	at := new(big.Rat).SetInt64(r.now)
	if r.offset != nil {
		at.Set(r.offset)
	}
	end := new(big.Rat).SetInt64(until)
	for len(r.queue) > 0 {
		head := &r.queue[0]
		if r.rate > 0 {
			needs := new(big.Rat).Mul(head.bits, big.NewRat(1e9, r.rate))
			departs := new(big.Rat).Add(at, needs)
			// The engine's clock counts whole nanoseconds: a packet departs in the nanosecond of its last bit.
			if floor(departs) > until {
				if passed := new(big.Rat).Sub(end, at); passed.Sign() > 0 {
					head.bits.Sub(head.bits, passed.Mul(passed, big.NewRat(r.rate, 1e9)))
					at = end
				}
				break
			}
			at = departs
		}
		due := floor(at) + r.latency
		if n := len(r.delivered); n > 0 {
			due = max(due, r.delivered[n-1].due)
		}
		r.delivered = append(r.delivered, delivery{head.number, due})
		r.queue = r.queue[1:]
	}
	r.now, r.offset = until, nil
	if len(r.queue) > 0 && at.Cmp(end) > 0 {
		r.offset = at
	}
}

func (r *reference) offer(number int, size int64) (dropped bool) {
	var waiting int64
	for _, p := range r.queue {
		waiting += p.size
	}
	if r.rate > 0 && waiting > 0 && waiting+size > r.limit {
		return true
	}
	r.queue = append(r.queue, referencePacket{number, size, new(big.Rat).SetInt64(8 * size)})
	if r.rate == 0 {
		r.run(r.now)
	}
	return false
}

func floor(x *big.Rat) int64 { return new(big.Int).Div(x.Num(), x.Denom()).Int64() }

// The engine and the reference agree over random schedules of packets and changes: every packet has the same outcome
// and due times that differ by at most 2 ns.
func TestEngineMatchesReference(t *testing.T) {
	const schedules, steps, tolerance = 10_000, 60, 2
	var worst int64
	for seed := range uint64(schedules) {
		if apart := compareSchedule(t, seed, steps); apart > tolerance {
			t.Fatalf("schedule %d: a packet is due %d ns off", seed, apart)
		} else {
			worst = max(worst, apart)
		}
	}
	t.Logf("%d schedules of %d steps: at most %d ns apart", schedules, steps, worst)
}

func compareSchedule(t *testing.T, seed uint64, steps int) (worst int64) {
	r := rand.New(rand.NewPCG(seed, 0))
	draw := func() link.Quality {
		q := link.Quality{Latency: time.Duration(r.IntN(200)) * time.Millisecond, Queue: 1 + r.Int64N(50_000)}
		if r.IntN(5) > 0 {
			q.Bandwidth = 1 + r.Int64N([]int64{50_000, 5_000_000, 1_000_000_000}[r.IntN(3)])
		}
		return q
	}
	q := draw()
	engine := New(Compile(q), "a~b", "ab", seed)
	model := &reference{rate: q.Bandwidth, latency: int64(q.Latency), limit: q.Queue}
	var script string
	var now int64
	var got []delivery
	accepted := []int{}
	collect := func(until int64) {
		for due, _, ok := engine.NextDue(until); ok && due <= until; due, _, ok = engine.NextDue(until) {
			if next := engine.Next(until); next.Packet != nil {
				got = append(got, delivery{accepted[len(got)], next.Due})
			}
		}
	}
	for number := range steps {
		if r.IntN(3) > 0 {
			now += r.Int64N([]int64{1_000, 1_000_000, 300_000_000}[r.IntN(3)])
		}
		collect(now)
		model.run(now)
		if r.IntN(6) == 0 {
			q = draw()
			script += fmt.Sprintf("%d: set %+v\n", now, q)
			engine.Set(now, Compile(q))
			model.rate, model.latency, model.limit = q.Bandwidth, int64(q.Latency), q.Queue
			model.run(now)
			continue
		}
		size := 20 + r.Int64N(1480)
		dropped := model.offer(number, size)
		v := engine.Offer(now, 0, single(t, int(size)), 0, false)
		script += fmt.Sprintf("%d: packet %d of %d bytes\n", now, number, size)
		if (v == Full) != dropped {
			t.Fatalf("schedule %d: packet %d dropped: engine %v, reference %v\n%s", seed, number, v == Full, dropped, script)
		}
		switch v {
		case Queued:
			accepted = append(accepted, number)
		case Send:
			collect(now)
			accepted = append(accepted, number)
			got = append(got, delivery{number, now})
		}
	}
	end := now + int64(100*time.Hour)
	collect(end)
	model.run(end)
	if len(got) != len(model.delivered) {
		t.Fatalf("schedule %d: the engine delivers %d packets, the reference %d\n%s", seed, len(got), len(model.delivered), script)
	}
	for i, want := range model.delivered {
		if got[i].number != want.number {
			t.Fatalf("schedule %d: delivery %d is packet %d, want %d\n%s", seed, i, got[i].number, want.number, script)
		}
		if d := max(got[i].due-want.due, want.due-got[i].due); d > 2 {
			t.Fatalf("schedule %d: packet %d is due at %d, reference %d\n%s", seed, want.number, got[i].due, want.due, script)
		} else {
			worst = max(worst, d)
		}
	}
	return worst
}
