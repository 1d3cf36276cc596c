// Package shape decides what one direction of a link does to each packet, and when.
//
//	packet ─► fate ─► bounded queue, bandwidth ─► latency, jitter ─► due
//	          │lost, twice, damaged, ahead        never before the packet before it
//
// Bandwidth is a virtual clock: the time at which the wire is free again. A packet is
// due once its last bit has left and the latency has passed. Times are nanoseconds on
// the caller's clock, so that the package neither waits nor reads a clock itself.
package shape

import (
	"hash/fnv"
	"math/bits"
	"math/rand/v2"

	"skerry/internal/link/userspace/packet"
)

// Fate is what is drawn for one packet.
type Fate uint8

// Fates; 0 is an ordinary packet, more than one may hold.
const (
	Lost    Fate = 1 << iota
	Twice        // a copy follows
	Damaged      // a bit is flipped
	Ahead        // sent at once, past those that wait
)

// Shaper is one direction of a link. One thread at a time may use it.
type Shaper struct {
	*Params
	random rand.PCG
	bad    bool // state of the Gilbert-Elliott model

	freeAt   int64 // when the wire is free
	fraction int64 // of freeAt, in units of 1 ns / rate
	last     int64 // when the packet last queued is due
	fifo     fifo
}

// New makes a direction. Packets meet the same fates whenever link, direction and seed
// are the same.
func New(p *Params, link, direction string, seed uint64) *Shaper {
	h := fnv.New64a()
	h.Write([]byte(link))
	h.Write([]byte{0})
	h.Write([]byte(direction))
	s := &Shaper{Params: p}
	s.random.Seed(seed, h.Sum64())
	return s
}

// Set changes the direction for packets to come. Those in flight keep their times.
func (s *Shaper) Set(p *Params) {
	if p.rate != s.rate {
		s.fraction = 0
	}
	if p.burst == nil {
		s.bad = false
	}
	s.Params = p
}

// chance is true with probability p. It takes nothing from the generator when p is 0, so
// that one setting does not disturb the draws of another.
func (s *Shaper) chance(p float64) bool {
	return p > 0 && float64(s.random.Uint64()>>11)/(1<<53) < p
}

// Fate draws what becomes of the next packet.
func (s *Shaper) Fate() Fate {
	var f Fate
	if s.chance(s.loss) || s.burst != nil && s.burstLoss() {
		return Lost
	}
	if s.chance(s.duplicate) {
		f |= Twice
	}
	return f | s.copyFate()
}

// CopyFate draws what becomes of the copy of a packet: it is neither lost nor copied.
func (s *Shaper) CopyFate() Fate { return s.copyFate() }

func (s *Shaper) copyFate() Fate {
	var f Fate
	if s.chance(s.corrupt) {
		f |= Damaged
	}
	if s.chance(s.reorder) {
		f |= Ahead
	}
	return f
}

// burstLoss draws a packet's loss in the present state and then the next state.
func (s *Shaper) burstLoss() bool {
	delivery, change := s.burst.K, s.burst.P
	if s.bad {
		delivery, change = s.burst.H, s.burst.R
	}
	lost := s.chance(1 - delivery)
	if s.chance(change) {
		s.bad = !s.bad
	}
	return lost
}

// Random draws 64 bits, for choosing the bit to flip.
func (s *Shaper) Random() uint64 { return s.random.Uint64() }

// Verdict is what Offer did with a packet.
type Verdict uint8

// Verdicts.
const (
	Queued Verdict = iota // Next will give it back
	Send                  // due at once, and nothing is before it
	Full                  // dropped at the tail of the queue
)

// Offer takes a packet in at a time, as its fate says, which is not due before until. Busy says that one
// given back by Next is still being sent.
func (s *Shaper) Offer(now, until int64, k *packet.Packet, f Fate, busy bool) Verdict {
	size := int64(k.Wire())
	departs := now
	if s.rate > 0 {
		waiting := s.fifo.waiting(now)
		if waiting > 0 && waiting+size > s.queue {
			return Full
		}
		departs = s.transmit(now, size)
	}
	if f&Ahead != 0 {
		return Send
	}
	due := max(departs+s.delay(), until, s.last)
	if due <= now && s.fifo.len() == 0 && !busy {
		return Send
	}
	s.last = due
	s.fifo.push(item{packet: k, due: due, departs: max(departs, s.freeAt), size: size})
	return Queued
}

// transmit charges bytes to the wire and returns when the last bit has left it.
func (s *Shaper) transmit(now, size int64) int64 {
	if now > s.freeAt {
		s.freeAt, s.fraction = now, 0
	}
	const bitsTimesNs = 8 * 1e9
	hi, lo := bits.Mul64(uint64(size), bitsTimesNs)
	lo, carry := bits.Add64(lo, uint64(s.fraction), 0)
	ns, rest := bits.Div64(hi+carry, lo, uint64(s.rate))
	s.freeAt += int64(ns)
	s.fraction = int64(rest)
	return s.freeAt
}

// delay is the latency with jitter.
func (s *Shaper) delay() int64 {
	if s.jitter == 0 {
		return s.latency
	}
	x := s.table[s.random.Uint64()%jitterValues]
	return max(0, s.latency+int64(x*s.jitter))
}

// Waits tells whether a packet is queued, when the next one is due, and when its last bit leaves the wire's
// beginning.
func (s *Shaper) Waits() (due, departs int64, ok bool) {
	if s.fifo.len() == 0 {
		return 0, 0, false
	}
	return s.fifo.head().due, s.fifo.head().departs, true
}

// Len is how many packets are queued.
func (s *Shaper) Len() int { return s.fifo.len() }

// Next takes out the packet that is due first.
func (s *Shaper) Next() (k *packet.Packet, due int64) {
	i := s.fifo.pop()
	return i.packet, i.due
}
