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
	probe, reply = 0x80, 0x81
	probeHeader  = 1 + 8 + 8
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
	margin, maxSlack, maxHold = int64(2 * time.Millisecond), int64(50 * time.Millisecond), int64(100 * time.Millisecond)
	// recent is how many round trips are looked at, first how many before the other's clock counts as known: one may
	// have been held up on one of its ways alone.
	maxSamples, minSamples = 16, 4
	// wander is what clocks may come apart by while a round trip grows old, in parts: crystals of virtual
	// machines that nobody disciplines are that good.
	clockDrift = 20e-6

	// stampUnit is what stamps count in, ns: 32 bits of it are 275 s.
	stampUnit = 64
	// noStamp and overtakes are stamps that are no times; a due time of pastOthers is that of a packet that overtakes.
	noStamp, overtakes = 0, 1
	pastOthers         = -1
)

// path is what a link knows of its way to another machine.
type path struct {
	maxPacket       int  // bytes of the longest packet, with all that goes before it
	initiates       bool // it asks before it has been asked
	real            bool // packets arrive when they arrive
	contacted       atomic.Bool
	probes, replies atomic.Uint64
	fullSize        atomic.Bool

	// trips are the last round trips in ns, a ring, times when they ended, and offsets by how much the other
	// clock was ahead then; of who reads the port.
	trips, times, offsets      [maxSamples]int64
	samples                    uint64       // how many of them came since a clock moved
	way, slow                  atomic.Int64 // half the median of the trips; of the longest, bounded
	offset                     atomic.Int64 // the best of the offsets
	clockKnown, peerClockKnown atomic.Bool  // the other's clock; by the other
}

func newPath(spec link.Spec) *path {
	mtu := spec.MTU
	if mtu == 0 {
		mtu = 1500
	}
	from, to := spec.B.Path.Local, spec.B.Path.Remote
	return &path{maxPacket: packet.VnetHeader + mtu, initiates: from.Compare(to) < 0, real: spec.B.Path.Real}
}

// handleProbe tells whether what came over a socket is a question or an answer, and deals with it.
func (c *path) handleProbe(fd int, b []byte, now int64) bool {
	if len(b) < probeHeader || b[0] != probe && b[0] != reply {
		return false
	}
	c.contacted.Store(true)
	if b[0] == probe {
		c.peerClockKnown.Store(binary.BigEndian.Uint64(b[9:]) != 0)
		b[0] = reply
		binary.BigEndian.PutUint64(b[9:], uint64(now))
		_ = writeRaw(fd, b) // one that is lost is as good as one not asked
		return true
	}
	asked, there := int64(binary.BigEndian.Uint64(b[1:])), int64(binary.BigEndian.Uint64(b[9:]))
	if now < asked {
		return true
	}
	c.addSample(asked, there, now)
	if len(b) >= c.maxPacket {
		c.fullSize.Store(true)
	}
	return true
}

// addSample takes in an answer that came now to what was asked then.
func (c *path) addSample(asked, there, now int64) {
	c.replies.Add(1)
	trip, offset := max(1, now-asked), there-(asked+now)/2
	if c.samples > 0 {
		last := (c.samples - 1) % maxSamples
		if apart := offset - c.offsets[last]; max(apart, -apart) > (trip+c.trips[last])/2+margin {
			c.samples = 0
		}
	}
	i := c.samples % maxSamples
	c.trips[i], c.times[i], c.offsets[i] = trip, now, offset
	c.samples++
	var sorted [maxSamples]int64
	trips := sorted[:min(c.samples, maxSamples)]
	best, least := int64(0), int64(never)
	for j := range trips {
		trips[j] = c.trips[j]
		if doubt := trips[j]/2 + int64(clockDrift*float64(now-c.times[j])); doubt < least {
			best, least = c.offsets[j], doubt
		}
	}
	slices.Sort(trips)
	way := trips[len(trips)/2] / 2
	c.way.Store(way)
	c.slow.Store(min(trips[len(trips)-1]/2, way+maxSlack))
	c.offset.Store(best)
	c.clockKnown.Store(c.samples >= minSamples)
}

// sendTime is when a packet is handed over that is due at a time, and whose last bit departs at another: to another
// machine ahead of when it is due, but not before it departs.
func (d *direction) sendTime(due, departs int64) int64 {
	if c := d.path; c != nil && !c.real && c.peerClockKnown.Load() {
		return max(departs, due-c.slow.Load()-margin)
	}
	return due
}

// encodeDue is what a packet that is due at a time says of it.
func (c *path) encodeDue(due int64) uint32 {
	switch {
	case c == nil || c.real:
		return noStamp
	case due == pastOthers:
		return overtakes
	}
	return max(overtakes+1, uint32(due/stampUnit))
}

// decodeDue is when a packet that came now is due by this machine's clock: 0 where that is not known, and pastOthers.
func (c *path) decodeDue(stamp uint32, now int64) int64 {
	switch {
	case stamp == noStamp || c.real:
		return 0
	case stamp == overtakes:
		return pastOthers
	case !c.clockKnown.Load():
		return 0
	}
	offset := c.offset.Load()
	there := (now + offset) / stampUnit
	due := (there+int64(int32(stamp-uint32(there))))*stampUnit - offset
	return min(due, now+maxHold)
}

// ProbePaths sends a question over the links' ways to other machines: one as long as the longest packet
// until such a one has been answered. The end that is to be asked first keeps quiet until then:
// tunnels whose ends both begin at the same moment find no key. The caller keeps the links from
// being removed.
func (p *Plane) ProbePaths(links []*Link) {
	b := make([]byte, packet.Largest)
	b[0] = probe
	for _, l := range links {
		c := l.path
		if c == nil || !c.initiates && !c.contacted.Load() {
			continue
		}
		size := probeHeader
		if !c.fullSize.Load() {
			size = c.maxPacket
		}
		b[probeHeader-1] = 0
		if c.clockKnown.Load() {
			b[probeHeader-1] = 1
		}
		c.probes.Add(1)
		binary.BigEndian.PutUint64(b[1:], uint64(p.now()))
		_ = writeRaw(l.B.FD, b[:size]) // as a packet that is lost on the way
	}
}

// PathDelay is half the median of the last round trips to the other machine; 0 where none came back.
func (l *Link) PathDelay() time.Duration {
	if l.path == nil {
		return 0
	}
	return time.Duration(l.path.way.Load())
}

// RealPath tells whether the link's way to another machine is left as it is.
func (l *Link) RealPath() bool { return l.path != nil && l.path.real }

// PathReady tells whether packets of the full length have crossed to the other machine and back, and the clocks of
// both are known to each other.
func (l *Link) PathReady() bool { return l.path == nil || l.path.stats().Ready }

// stats is what is known of the way.
func (c *path) stats() link.PathStats {
	return link.PathStats{
		Delay: time.Duration(c.way.Load()), Probes: c.probes.Load(), Replies: c.replies.Load(),
		Ready: c.fullSize.Load() && c.clockKnown.Load() && c.peerClockKnown.Load(),
	}
}
