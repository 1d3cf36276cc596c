package dataplane

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"skerry/internal/link"
	"skerry/internal/link/userspace/packet"
	"skerry/internal/link/userspace/shaper"
)

// Probes share the path with packets. The first bit of the byte that would start a virtio_net_hdr
// distinguishes them:
//
//	probe | 0x80 | time of the probe 8 B | 1 if the sender knows the peer's clock 8 B | padding |
//	reply | 0x81 | time of the probe 8 B | time of the reply 8 B                      | padding |
//
// Packet threads reply, so that a probe measures the delay that packets have.
const (
	probe, reply = 0x80, 0x81
	probeHeader  = 1 + 8 + 8
)

// # When a packet arrives
//
// The delay of a path varies: encrypting programs wait for processors, and others use the network. It is therefore
// not subtracted from a latency. The sender sends the packet early with its due time, and the receiver
// holds it until then. Both clocks are needed:
//
//	due here:       |──────────────── latency ────────────────►|
//	                |── waits ──►|── path ─►|─── is held ─────►|
//	                             └───── ahead ────────────────►│
//
// Probes measure the clock offset (D. L. Mills, "Internet time synchronization: the Network Time Protocol",
// 1991): the reply was given in the middle of the round trip, with an error of at most half of it. Three
// cases need care:
//
//  1. A packet is sent ahead to a machine that does not know this machine's clock. It would be handed over too
//     early. So a machine reports in its probes that it knows the peer's clock. Until then nothing is sent ahead,
//     and packets are late by the path delay, as on a link shorter than the path.
//  2. A reordered packet would be held behind the packets that it overtakes. It is marked.
//  3. A machine was suspended and its clock stopped, so that a packet seems due in an hour. Offsets that differ by
//     more than half their round trips show that a clock jumped; older samples are then dropped. In addition no
//     packet is held for longer than a tenth of a second.
const (
	// margin is the extra time beyond half of the slowest recent round trip. maxSlack bounds that half above
	// the median. maxHold bounds how long a packet is held, because it may be quicker than expected.
	margin, maxSlack, maxHold = int64(2 * time.Millisecond), int64(50 * time.Millisecond), int64(100 * time.Millisecond)
	// maxSamples is the number of recent round trips. After minSamples the peer's clock counts as known: a
	// single sample may have been delayed in one direction only.
	maxSamples, minSamples = 16, 4
	// clockDrift is the assumed relative drift of the clocks while a sample ages: undisciplined virtual
	// machines stay within it.
	clockDrift = 20e-6

	// stampUnit is the unit of stamps in ns: 32 bits of it are 275 s.
	stampUnit = 64
	// noStamp and overtakes are special stamps. pastOthers is the due time of a packet that overtakes.
	noStamp, overtakes = 0, 1
	pastOthers         = -1
)

// path is the state of a path to another machine.
type path struct {
	maxPacket       int  // bytes of the longest packet, headers included
	initiates       bool // this end sends the first probe
	real            bool // packets are not held
	contacted       atomic.Bool
	probes, replies atomic.Uint64
	fullSize        atomic.Bool

	// Ring of recent samples: round trips in ns, times at their ends, and clock offsets of the peer. Owned by
	// the reader of the port.
	trips, times, offsets      [maxSamples]int64
	samples                    uint64       // samples since a clock jumped
	way, slow                  atomic.Int64 // half the median of the trips; half the longest, bounded
	offset                     atomic.Int64 // best clock offset
	clockKnown, peerClockKnown atomic.Bool  // this machine knows the peer's clock; the peer knows this clock
}

func newPath(spec link.Spec) *path {
	mtu := spec.MTU
	if mtu == 0 {
		mtu = 1500
	}
	from, to := spec.B.Path.Local, spec.B.Path.Remote
	return &path{maxPacket: packet.VnetHeader + mtu, initiates: from.Compare(to) < 0, real: spec.B.Path.Real}
}

// handleProbe handles b if it is a probe or a reply, and reports whether it was one.
func (c *path) handleProbe(fd int, b []byte, now int64) bool {
	if len(b) < probeHeader || b[0] != probe && b[0] != reply {
		return false
	}
	c.contacted.Store(true)
	if b[0] == probe {
		c.peerClockKnown.Store(binary.BigEndian.Uint64(b[9:]) != 0)
		b[0] = reply
		binary.BigEndian.PutUint64(b[9:], uint64(now))
		_ = writeRaw(fd, b) // a lost reply counts as a lost probe
		return true
	}
	sent, there := int64(binary.BigEndian.Uint64(b[1:])), int64(binary.BigEndian.Uint64(b[9:]))
	if now < sent {
		return true
	}
	c.addSample(sent, there, now)
	if len(b) >= c.maxPacket {
		c.fullSize.Store(true)
	}
	return true
}

// addSample records a reply that arrived now.
func (c *path) addSample(sent, there, now int64) {
	c.replies.Add(1)
	trip, offset := max(1, now-sent), there-(sent+now)/2
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

// sendTime returns when a packet is sent. To another machine it is sent ahead of its due time, but not
// before it departs.
func (d *direction) sendTime(due, departs int64) int64 {
	if c := d.path; c != nil && !c.real && c.peerClockKnown.Load() {
		return max(departs, due-c.slow.Load()-margin)
	}
	return due
}

// encodeDue returns the stamp of a due time.
func (c *path) encodeDue(due int64) uint32 {
	switch {
	case c == nil || c.real:
		return noStamp
	case due == pastOthers:
		return overtakes
	}
	return max(overtakes+1, uint32(due/stampUnit))
}

// decodeDue returns the due time by this machine's clock: 0 if unknown, or pastOthers.
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

// ProbePaths sends a probe on each path. Until a reply of full length has arrived, probes are as long as the
// longest packet. The end that does not initiate stays silent until then: tunnels fail to agree on keys if both
// ends start at the same moment. The caller must not remove the links meanwhile.
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
		_ = writeRaw(l.B.FD, b[:size]) // a failed write counts as a lost probe
	}
}

// PathDelay returns half the median of recent round trips, or 0 without replies.
func (l *Link) PathDelay() time.Duration {
	if l.path == nil {
		return 0
	}
	return time.Duration(l.path.way.Load())
}

// RealPath reports whether the link keeps the delay of its path.
func (l *Link) RealPath() bool { return l.path != nil && l.path.real }

// PathReady reports whether packets of full length have crossed in both directions and both machines
// know each other's clock.
func (l *Link) PathReady() bool { return l.path == nil || l.path.stats().Ready }

func (c *path) stats() link.PathStats {
	return link.PathStats{
		Delay: time.Duration(c.way.Load()), Probes: c.probes.Load(), Replies: c.replies.Load(),
		Ready: c.fullSize.Load() && c.clockKnown.Load() && c.peerClockKnown.Load(),
	}
}

const (
	// trainBytes and trainPackets bound one system call: the size of an IP packet minus tunnel headers, and
	// the limit of Linux (UDP_MAX_SEGMENTS).
	trainBytes, trainPackets = 64000, 64
	// cmsgSpace holds one control message with a number.
	cmsgSpace = 24
)

// train sends or receives several datagrams of one length, except the last, with one system call
// (UDP_SEGMENT, UDP_GRO). It belongs to one thread.
type train struct {
	buf     []byte
	msg     unix.Msghdr
	iov     unix.Iovec
	control [cmsgSpace]byte
}

func newTrain() *train {
	t := &train{buf: make([]byte, packet.Largest)}
	t.iov.Base = &t.buf[0]
	t.msg.Iov = &t.iov
	t.msg.SetIovlen(1)
	return t
}

// send sends the first bytes of buf as datagrams of size bytes.
func (t *train) send(fd, bytes, size int) unix.Errno {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&t.control[0]))
	h.Level, h.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	*(*uint16)(unsafe.Pointer(&t.control[unix.CmsgLen(0)])) = uint16(size)
	t.iov.SetLen(bytes)
	t.msg.Control = &t.control[0]
	t.msg.SetControllen(unix.CmsgSpace(2))
	_, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&t.msg)), 0)
	return errno
}

// receive fills buf with one datagram, or with several of size bytes.
func (t *train) receive(fd int) (bytes, size int, errno unix.Errno) {
	t.iov.SetLen(len(t.buf))
	t.msg.Control = &t.control[0]
	t.msg.SetControllen(len(t.control))
	n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&t.msg)), 0)
	size = int(n)
	h := (*unix.Cmsghdr)(unsafe.Pointer(&t.control[0]))
	if errno == 0 && t.msg.Controllen > 0 && h.Level == unix.SOL_UDP && h.Type == unix.UDP_GRO {
		size = max(1, int(*(*int32)(unsafe.Pointer(&t.control[unix.CmsgLen(0)]))))
	}
	return int(n), size, errno
}

// sendTrain sends the segments of a super-packet to another machine and returns how many were sent.
func (w *worker) sendTrain(d *direction, k *packet.Packet, stamp uint32) (sent int) {
	for i := 0; i < k.Segments(); {
		size, next, all := k.Train(w.outbound.buf[:trainBytes], i, trainPackets)
		for at := 0; at < all; at += size {
			packet.WriteStamp(w.outbound.buf[at:all], stamp)
		}
		if next-i > 1 && w.outbound.send(d.fd, all, size) == 0 {
			i, sent = next, sent+next-i
			continue
		}
		// A single segment, or a system without UDP_SEGMENT.
		for b := w.outbound.buf[:all]; len(b) > 0; b = b[min(size, len(b)):] {
			if writeRaw(d.fd, b[:min(size, len(b))]) == 0 {
				sent++
			}
		}
		i = next
	}
	return sent
}

// receiveTrain accepts datagrams of size bytes, except the last, from another machine.
func (w *worker) receiveTrain(t *port, b []byte, size int, came, now int64) {
	for len(b) > 0 {
		one := b[:min(size, len(b))]
		if t.path.handleProbe(t.fd, one, now) {
			b = b[len(one):]
			continue
		}
		n := packet.JoinableLength(b, size)
		stamp := packet.ClearStamp(b)
		k := w.pool.get(n)
		switch {
		case k == nil:
			t.out.droppedQueue.Add(uint64((n + size - 1) / size))
		case k.Join(b[:n], size):
			if until := t.path.decodeDue(stamp, now); until == pastOthers {
				w.enqueue(t.out, k, came, 0, shaper.Reordered)
			} else {
				w.admit(t.out, k, came, until)
			}
		default:
			w.pool.put(k)
		}
		b = b[n:]
	}
}
