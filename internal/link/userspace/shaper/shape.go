// Package shaper decides what one direction of a link does to each packet, and when.
//
//	packet ─► fate ─► bounded queue, wire ─► latency, jitter ─► due
//	          │lost, duplicated,             never before the packet before it
//	          │damaged, reordered
//
// Only the packet at the head of the queue has a departure time: the others depart when the
// wire has carried those before them at whatever bandwidth holds by then. A packet whose last
// bit has left the wire is in flight and keeps its due time.
//
// Times are nanoseconds on the caller's clock. The package neither waits nor reads a clock.
package shaper

import (
	"hash/fnv"
	"math/rand/v2"

	"skerry/internal/link/userspace/packet"
	"skerry/internal/link/userspace/planted"
)

// Fate is what is drawn for one packet.
type Fate uint8

// Fates; 0 is an ordinary packet, more than one may hold.
const (
	Lost       Fate = 1 << iota
	Duplicated      // a copy follows
	Corrupted       // a bit is flipped
	Reordered       // sent at once, past those that wait
)

// Shaper is one direction of a link. One thread at a time may use it.
type Shaper struct {
	*Params
	random rand.PCG
	bad    bool // state of the Gilbert-Elliott model
	noise  noise

	wire    fifo  // the head is being transmitted, the others wait for it
	departs int64 // when the last bit of the head leaves the wire
	due     int64 // when the head is due, as long as the settings stay
	freeAt  int64 // when the wire became or becomes free
	// fraction is how much later than freeAt the wire really is free, in units of 1 ns / rate.
	fraction uint64

	flight fifo
	last   int64 // due time of the packet that departed last
}

// New makes a direction. Packets meet the same fates whenever link, direction and seed
// are the same.
func New(p *Params, link, direction string, seed uint64) *Shaper {
	h := fnv.New64a()
	h.Write([]byte(link))
	h.Write([]byte{0})
	h.Write([]byte(direction))
	s := &Shaper{Params: p, noise: noise{seed: seed ^ h.Sum64()}}
	s.random.Seed(seed, h.Sum64())
	return s
}

// Set changes the direction at a time. Packets in flight keep their due times; those in the
// queue depart at the new bandwidth and travel with the new latency.
func (s *Shaper) Set(now int64, p *Params) {
	s.advance(now)
	if planted.Changes {
		return
	}
	if planted.Departures && s.wire.len() > 0 {
		old := *p
		old.rate = s.rate
		p = &old
	}
	if p.rate != s.rate {
		s.changeRate(now, p.rate)
	}
	if p.burst == nil {
		s.bad = false
	}
	s.Params = p
	s.planHead()
	s.advance(now)
}

// changeRate recomputes when the wire is free: what of the head has not been transmitted by
// now is transmitted at the new rate.
func (s *Shaper) changeRate(now, rate int64) {
	if s.freeAt < now || s.rate == 0 {
		s.fraction = 0
		return
	}
	left := uint64(s.freeAt-now)*uint64(s.rate) + s.fraction // bits * 1e9
	if rate == 0 {
		s.freeAt, s.fraction = now, 0
	} else {
		s.freeAt = now + int64(left/uint64(rate))
		s.fraction = left % uint64(rate)
	}
	s.departs = s.freeAt
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
		f |= Duplicated
	}
	return f | s.copyFate()
}

// CopyFate draws what becomes of the copy of a packet: it is neither lost nor copied.
func (s *Shaper) CopyFate() Fate { return s.copyFate() }

func (s *Shaper) copyFate() Fate {
	var f Fate
	if s.chance(s.corrupt) {
		f |= Corrupted
	}
	if s.chance(s.reorder) {
		f |= Reordered
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
	Queued Verdict = iota // Next will return it
	Send                  // due at once, and nothing is before it
	Full                  // dropped at the tail of the queue
)

// Offer accepts a packet at a time, as its fate says, which is not due before until. Busy says
// that one returned by Next is still being sent.
func (s *Shaper) Offer(now, until int64, k *packet.Packet, f Fate, busy bool) Verdict {
	s.advance(now)
	i := item{packet: k, size: int64(k.Wire()), until: until, arrived: now}
	if s.rate > 0 {
		if s.wire.len() > 0 && s.wire.bytes+i.size > s.queue {
			return Full
		}
		if f&Reordered != 0 {
			i.packet = nil
		}
		s.wire.push(i)
		if s.wire.len() == 1 {
			s.transmitHead(now)
		}
		if f&Reordered != 0 {
			return Send
		}
		return Queued
	}
	if f&Reordered != 0 {
		return Send
	}
	due := s.dueTime(&i, now)
	if due <= now && s.flight.len() == 0 && !busy {
		return Send
	}
	s.launch(i, now, due)
	return Queued
}

// advance moves the packets whose last bit has left the wire by a time into flight.
func (s *Shaper) advance(now int64) {
	for s.wire.len() > 0 && s.departs <= now {
		s.departHead()
	}
}

// departHead puts the head of the queue into flight, and begins to transmit the next packet at
// that moment.
func (s *Shaper) departHead() {
	departs, due := s.departs, s.due
	if i := s.wire.pop(); i.packet != nil {
		s.launch(i, departs, due)
	}
	if s.wire.len() > 0 {
		s.transmitHead(departs)
	}
}

func (s *Shaper) launch(i item, departs, due int64) {
	i.departs, i.due = departs, due
	s.last = due
	s.flight.push(i)
}

// transmitHead begins to transmit the head of the queue, at a time or when the wire is free.
func (s *Shaper) transmitHead(now int64) {
	if now > s.freeAt {
		s.freeAt, s.fraction = now, 0
	}
	if s.rate > 0 {
		const bitNanoseconds = 8 * 1e9
		left := uint64(s.wire.head().size)*bitNanoseconds + s.fraction
		s.freeAt += int64(left / uint64(s.rate))
		s.fraction = left % uint64(s.rate)
	}
	s.departs = s.freeAt
	s.planHead()
}

// planHead computes when the head of the queue is due if the settings stay as they are.
func (s *Shaper) planHead() {
	if s.wire.len() > 0 {
		s.due = s.dueTime(s.wire.head(), s.departs)
	}
}

// dueTime is when a packet that departs at a time arrives.
func (s *Shaper) dueTime(i *item, departs int64) int64 {
	return max(departs+s.delay(departs), i.until, s.last)
}

// delay is the latency with the jitter of a moment.
func (s *Shaper) delay(at int64) int64 {
	if planted.Latency {
		return s.latency / 2
	}
	if s.jitter == 0 {
		return s.latency
	}
	return max(0, s.latency+int64(s.jitter*s.spread(s.noise.at(at, s.period))))
}

// NextDue reports whether a packet is queued or in flight, when the next one is due, and when its
// last bit leaves the wire, as long as the settings stay as they are.
func (s *Shaper) NextDue(now int64) (due, departs int64, ok bool) {
	s.advance(now)
	switch {
	case s.flight.len() > 0:
		return s.flight.head().due, s.flight.head().departs, true
	case s.wire.len() == 0:
		return 0, 0, false
	case s.wire.head().packet == nil: // nothing is due before the packet behind it departs
		return s.departs, s.departs, true
	default:
		return s.due, s.departs, true
	}
}

// Len is how many packets are queued or in flight.
func (s *Shaper) Len() int { return s.wire.len() + s.flight.len() }

// Backlog is how many bytes have not left the wire at a time, and how many packets are in flight.
func (s *Shaper) Backlog(now int64) (waiting int64, flying int) {
	s.advance(now)
	return s.wire.bytes, s.flight.len()
}

// Delivery is a packet that Next removed, with the times of its way over the link.
type Delivery struct {
	Packet                *packet.Packet
	Arrived, Departs, Due int64
	Bytes                 int64
	Foreign               bool // another machine decided when it is due
}

// Next removes the packet that is due first, of those whose last bit has left the wire by a
// time. Its Packet is nil if there is none.
func (s *Shaper) Next(now int64) Delivery {
	s.advance(now)
	if s.flight.len() == 0 {
		return Delivery{}
	}
	i := s.flight.pop()
	return Delivery{i.packet, i.arrived, i.departs, i.due, i.size, i.until > 0}
}

// Clear removes every packet and passes it to release.
func (s *Shaper) Clear(release func(*packet.Packet)) {
	for _, q := range []*fifo{&s.flight, &s.wire} {
		for q.len() > 0 {
			if k := q.pop().packet; k != nil {
				release(k)
			}
		}
	}
}
