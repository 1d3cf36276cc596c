package dataplane

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
	"time"

	"skerry/internal/link"
	"skerry/internal/link/userspace/packet"
)

// What goes over the way to another machine beside packets, told from them by the first bit of
// what would be a virtio_net_hdr:
//
//	question | 0x80 | time of the question 8 B | 1 where the asker knows the other's clock 8 B | as many bytes as wanted |
//	answer   | 0x81 | time of the question 8 B | time of the answer 8 B                        | as many              |
//
// The threads that move packets answer, so that what is measured is the way that packets take.
const (
	question, answer = 0x80, 0x81
	questionHeader   = 1 + 8 + 8
)

// # When a packet arrives
//
// What a way takes differs from packet to packet: it is encrypted by programs that wait for processors, and crosses
// networks that others use. So nothing of it is taken off a latency. The packet leaves early, says when it is due, and
// the other machine keeps it until then, by the clocks of both:
//
//	due here:       |──────────────── latency ────────────────►|
//	                |── waits ──►|── way ──►|─── is kept ─────►|
//	                             └───── ahead ────────────────►│
//
// The clocks' difference follows from questions and answers (D. L. Mills, "Internet time synchronization: the
// Network Time Protocol", 1991): the answer was given in the middle of the round trip, or off by half of it at
// most. What would go wrong otherwise:
//
//  1. A packet is sent ahead to a machine that does not know the clock of this one, and is handed over too
//     early. So a machine says in its questions that it does; until then nothing is sent ahead, and packets are late
//     by the way, as on a link that is shorter than that.
//  2. A packet that overtakes others, as reordering asks for, would be kept behind them. It is marked.
//  3. A machine slept, and its clock with it, so that a packet seems due in an hour. Answers whose offsets differ by more
//     than halves of their round trips were given by clocks of which one has moved: older ones are forgotten. And no
//     packet is kept for longer than a tenth of a second.
const (
	// margin is what packets may be slower than half of the slowest of the last round trips, and mostAhead what that
	// may be above half of their median. A packet is kept for longest at most, as it may be quicker than these.
	margin, mostAhead, longest = int64(2 * time.Millisecond), int64(50 * time.Millisecond), int64(100 * time.Millisecond)
	// recent is how many round trips are looked at, first how many before the other's clock counts as known: one may
	// have been held up on one of its ways alone.
	recent, first = 16, 4
	// wander is what clocks may come apart by while a round trip grows old, in parts: crystals of virtual
	// machines that nobody disciplines are that good.
	wander = 20e-6

	// stampUnit is what stamps count in, ns: 32 bits of it are 275 s.
	stampUnit = 64
	// noStamp and overtakes are stamps that are no times; a due time of pastOthers is that of a packet that overtakes.
	noStamp, overtakes = 0, 1
	pastOthers         = -1
)

// crossing is what a link knows of its way to another machine.
type crossing struct {
	whole           int  // bytes of the longest packet, with all that goes before it
	calls           bool // it asks before it has been asked
	real            bool // packets arrive when they arrive
	heard           atomic.Bool
	asked, answered atomic.Uint64
	proved          atomic.Bool

	// trips are the last round trips in ns, a ring, times when they ended, and offsets by how much the other
	// clock was ahead then; of who reads the port.
	trips, times, offsets [recent]int64
	kept                  uint64       // how many of them came since a clock moved
	way, slow             atomic.Int64 // half the median of the trips; of the longest, bounded
	offset                atomic.Int64 // the best of the offsets
	knows, known          atomic.Bool  // the other's clock; by the other
}

func newCrossing(spec link.Spec) *crossing {
	mtu := spec.MTU
	if mtu == 0 {
		mtu = 1500
	}
	from, to := spec.B.Far.Local, spec.B.Far.Remote
	return &crossing{whole: packet.VnetHeader + mtu, calls: from.Compare(to) < 0, real: spec.B.Far.Real}
}

// takes tells whether what came over a socket is a question or an answer, and deals with it.
func (c *crossing) takes(fd int, b []byte, now int64) bool {
	if len(b) < questionHeader || b[0] != question && b[0] != answer {
		return false
	}
	c.heard.Store(true)
	if b[0] == question {
		c.known.Store(binary.BigEndian.Uint64(b[9:]) != 0)
		b[0] = answer
		binary.BigEndian.PutUint64(b[9:], uint64(now))
		_ = writeRaw(fd, b) // one that is lost is as good as one not asked
		return true
	}
	asked, there := int64(binary.BigEndian.Uint64(b[1:])), int64(binary.BigEndian.Uint64(b[9:]))
	if now < asked {
		return true
	}
	c.learn(asked, there, now)
	if len(b) >= c.whole {
		c.proved.Store(true)
	}
	return true
}

// learn takes in an answer that came now to what was asked then.
func (c *crossing) learn(asked, there, now int64) {
	c.answered.Add(1)
	trip, offset := max(1, now-asked), there-(asked+now)/2
	if c.kept > 0 {
		last := (c.kept - 1) % recent
		if apart := offset - c.offsets[last]; max(apart, -apart) > (trip+c.trips[last])/2+margin {
			c.kept = 0
		}
	}
	i := c.kept % recent
	c.trips[i], c.times[i], c.offsets[i] = trip, now, offset
	c.kept++
	var sorted [recent]int64
	trips := sorted[:min(c.kept, recent)]
	best, least := int64(0), int64(never)
	for j := range trips {
		trips[j] = c.trips[j]
		if doubt := trips[j]/2 + int64(wander*float64(now-c.times[j])); doubt < least {
			best, least = c.offsets[j], doubt
		}
	}
	slices.Sort(trips)
	way := trips[len(trips)/2] / 2
	c.way.Store(way)
	c.slow.Store(min(trips[len(trips)-1]/2, way+mostAhead))
	c.offset.Store(best)
	c.knows.Store(c.kept >= first)
}

// leaves is when a packet is handed over that is due at a time, and whose last bit departs at another: to another
// machine ahead of when it is due, but not before it departs.
func (d *direction) leaves(due, departs int64) int64 {
	if c := d.far; c != nil && !c.real && c.known.Load() {
		return max(departs, due-c.slow.Load()-margin)
	}
	return due
}

// stamp is what a packet that is due at a time says of it.
func (c *crossing) stamp(due int64) uint32 {
	switch {
	case c == nil || c.real:
		return noStamp
	case due == pastOthers:
		return overtakes
	}
	return max(overtakes+1, uint32(due/stampUnit))
}

// until is when a packet that came now is due by this machine's clock: 0 where that is not known, and pastOthers.
func (c *crossing) until(stamp uint32, now int64) int64 {
	switch {
	case stamp == noStamp || c.real:
		return 0
	case stamp == overtakes:
		return pastOthers
	case !c.knows.Load():
		return 0
	}
	offset := c.offset.Load()
	there := (now + offset) / stampUnit
	due := (there+int64(int32(stamp-uint32(there))))*stampUnit - offset
	return min(due, now+longest)
}

// Ask sends a question over the links' ways to other machines: one as long as the longest packet
// until such a one has been answered. The end that is to be asked first keeps quiet until then:
// tunnels whose ends both begin at the same moment find no key. The caller keeps the links from
// being removed.
func (p *Plane) Ask(links []*Link) {
	b := make([]byte, packet.Largest)
	b[0] = question
	for _, l := range links {
		c := l.far
		if c == nil || !c.calls && !c.heard.Load() {
			continue
		}
		size := questionHeader
		if !c.proved.Load() {
			size = c.whole
		}
		b[questionHeader-1] = 0
		if c.knows.Load() {
			b[questionHeader-1] = 1
		}
		c.asked.Add(1)
		binary.BigEndian.PutUint64(b[1:], uint64(p.now()))
		_ = writeRaw(l.B.FD, b[:size]) // as a packet that is lost on the way
	}
}

// Crossed is half the median of the last round trips to the other machine; 0 where none came back.
func (l *Link) Crossed() time.Duration {
	if l.far == nil {
		return 0
	}
	return time.Duration(l.far.way.Load())
}

// Real tells whether the link's way to another machine is left as it is.
func (l *Link) Real() bool { return l.far != nil && l.far.real }

// Proved tells whether packets of the full length have crossed to the other machine and back, and the clocks of
// both are known to each other.
func (l *Link) Proved() bool { return l.far == nil || l.far.tell().Proved }

// tell is what is known of the way.
func (c *crossing) tell() link.Crossing {
	return link.Crossing{
		Way: time.Duration(c.way.Load()), Asked: c.asked.Load(), Answered: c.answered.Load(),
		Proved: c.proved.Load() && c.knows.Load() && c.known.Load(),
	}
}
