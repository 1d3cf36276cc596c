// Package shaper decides what one direction of a link does to each packet, and when.
//
//	packet ─► fate ─► bounded queue, wire ─► latency, jitter ─► due
//	          │lost, duplicated,             never before the packet before it
//	          │corrupted, reordered
//
// Invariant: only the packet at the head of the queue has a departure time. Packets behind it depart at
// whatever bandwidth holds by then. A packet whose last bit has left the wire is in flight and keeps its due time.
//
// Times are nanoseconds on the caller's clock. The package neither waits nor reads a clock.
package shaper

import (
	"hash/fnv"
	"math/rand/v2"

	"skerry/internal/link/userspace/packet"
)

// Fate is the random outcome for one packet.
type Fate uint8

// Fates may be combined; 0 is an ordinary packet.
const (
	Lost       Fate = 1 << iota
	Duplicated      // a copy follows
	Corrupted       // a bit is flipped
	Reordered       // sent at once, ahead of queued packets
)

// Shaper is one direction of a link. It is not safe for concurrent use.
type Shaper struct {
	*Params
	random rand.PCG
	bad    bool // state of the Gilbert-Elliott model
	noise  noise

	wire    fifo  // the head is being transmitted, the others wait for it
	departs int64 // when the last bit of the head leaves the wire
	due     int64 // due time of the head under the present settings
	freeAt  int64 // when the wire became or becomes free
	// fraction refines freeAt, in units of 1 ns / rate.
	fraction uint64

	flight fifo
	last   int64 // due time of the last departed packet
}

// New creates a direction. Equal link, direction and seed give packets the same fates.
func New(p *Params, link, direction string, seed uint64) *Shaper {
	h := fnv.New64a()
	h.Write([]byte(link))
	h.Write([]byte{0})
	h.Write([]byte(direction))
	s := &Shaper{Params: p, noise: noise{seed: seed ^ h.Sum64()}}
	s.random.Seed(seed, h.Sum64())
	return s
}

// Set changes the quality at a time. Packets in flight keep their due times. Queued packets depart at the
// new bandwidth and with the new latency.
func (s *Shaper) Set(now int64, p *Params) {
	s.advance(now)
	if plantedChanges {
		return
	}
	if plantedDepartures && s.wire.len() > 0 {
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

// changeRate recomputes freeAt: the untransmitted part of the head leaves at the new rate.
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

// chance is true with probability p. It draws nothing if p is 0, so that one setting does not disturb
// the draws of another.
func (s *Shaper) chance(p float64) bool {
	return p > 0 && float64(s.random.Uint64()>>11)/(1<<53) < p
}

// Fate draws the fate of the next packet.
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

// CopyFate draws the fate of a copy, which is neither lost nor copied again.
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

// burstLoss draws a loss in the present state and then the next state.
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

// Random returns 64 random bits to choose the bit to flip.
func (s *Shaper) Random() uint64 { return s.random.Uint64() }

// Verdict is the result of Offer.
type Verdict uint8

const (
	Queued Verdict = iota // Next will return it
	Send                  // due now, with no packet before it
	Full                  // dropped at the tail of the queue
)

// Offer accepts a packet at a time. The packet is not due before until. busy means that a packet
// returned by Next is still being sent.
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

// advance moves packets whose last bit has left the wire into flight.
func (s *Shaper) advance(now int64) {
	for s.wire.len() > 0 && s.departs <= now {
		s.departHead()
	}
}

// departHead moves the head of the queue into flight and starts the transmission of the next packet.
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

// transmitHead starts the transmission of the head at a time, or later when the wire is free.
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

// planHead computes the due time of the head under the present settings.
func (s *Shaper) planHead() {
	if s.wire.len() > 0 {
		s.due = s.dueTime(s.wire.head(), s.departs)
	}
}

// dueTime returns the arrival time of a packet that departs at a time.
func (s *Shaper) dueTime(i *item, departs int64) int64 {
	return max(departs+s.delay(departs), i.until, s.last)
}

// delay returns latency plus jitter at a time.
func (s *Shaper) delay(at int64) int64 {
	if plantedLatency {
		return s.latency / 2
	}
	if s.jitter == 0 {
		return s.latency
	}
	return max(0, s.latency+int64(s.jitter*s.spread(s.noise.at(at, s.period))))
}

// NextDue returns when the next packet is due and departs under the present settings. ok is false
// without a packet.
func (s *Shaper) NextDue(now int64) (due, departs int64, ok bool) {
	s.advance(now)
	switch {
	case s.flight.len() > 0:
		return s.flight.head().due, s.flight.head().departs, true
	case s.wire.len() == 0:
		return 0, 0, false
	case s.wire.head().packet == nil: // no packet is due before the one behind it departs
		return s.departs, s.departs, true
	default:
		return s.due, s.departs, true
	}
}

// Len returns the number of packets queued or in flight.
func (s *Shaper) Len() int { return s.wire.len() + s.flight.len() }

// Backlog returns the bytes that have not left the wire and the number of packets in flight.
func (s *Shaper) Backlog(now int64) (waiting int64, flying int) {
	s.advance(now)
	return s.wire.bytes, s.flight.len()
}

// Delivery is a packet removed by Next, with its times.
type Delivery struct {
	Packet                *packet.Packet
	Arrived, Departs, Due int64
	Bytes                 int64
	Foreign               bool // another machine decided when it is due
}

// Next removes the first packet in flight at a time. Its Packet is nil if there is none.
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

// item is a packet on the link. A reordered packet occupies the wire but was sent already: its packet is nil.
type item struct {
	packet  *packet.Packet
	size    int64 // layer-3 bytes
	until   int64 // earliest due time, set by another machine; 0 means none
	arrived int64 // time of Offer
	departs int64 // when its last bit leaves the wire; set in flight
	due     int64 // time of arrival at the far end; set in flight
}

type fifo struct {
	ring  []item // length is a power of two
	first uint64 // total of removed items
	added uint64
	bytes int64 // of all items
}

const firstRing = 16

func (q *fifo) len() int { return int(q.added - q.first) }

func (q *fifo) at(i uint64) *item { return &q.ring[i&uint64(len(q.ring)-1)] }

func (q *fifo) head() *item { return q.at(q.first) }

func (q *fifo) push(i item) {
	if q.len() == len(q.ring) {
		q.grow()
	}
	*q.at(q.added) = i
	q.added++
	q.bytes += i.size
}

func (q *fifo) grow() {
	ring := make([]item, max(firstRing, 2*len(q.ring)))
	for i := q.first; i < q.added; i++ {
		ring[i&uint64(len(ring)-1)] = *q.at(i)
	}
	q.ring = ring
}

func (q *fifo) pop() item {
	head := q.head()
	got := *head
	*head = item{}
	q.first++
	q.bytes -= got.size
	return got
}
