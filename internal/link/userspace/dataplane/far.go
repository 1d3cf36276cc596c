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
//	| question or answer 1 B | time of the question 8 B | as many bytes as wanted |
//
// An answer is the question with another first byte. The threads that move packets answer, so
// that what is measured is the way that packets take.
const (
	question, answer = 0x80, 0x81
	questionHeader   = 1 + 8
)

// recent is how many round trips are looked at.
const recent = 16

// crossing is what a link knows of its way to another machine.
type crossing struct {
	whole           int  // bytes of the longest packet, with all that goes before it
	calls           bool // it asks before it has been asked
	heard           atomic.Bool
	asked, answered atomic.Uint64
	proved          atomic.Bool
	trips           [recent]atomic.Int64 // ns, a ring
	oneWay, short   atomic.Int64         // ns, as last taken off
}

func newCrossing(spec link.Spec) *crossing {
	mtu := spec.MTU
	if mtu == 0 {
		mtu = 1500
	}
	from, to := spec.B.Far.Local, spec.B.Far.Remote
	return &crossing{whole: packet.VnetHeader + mtu, calls: from.Compare(to) < 0}
}

// takes tells whether what came over a socket is a question or an answer, and deals with it.
func (c *crossing) takes(fd int, b []byte, now int64) bool {
	if len(b) < questionHeader || b[0] != question && b[0] != answer {
		return false
	}
	c.heard.Store(true)
	if b[0] == question {
		b[0] = answer
		_ = writeRaw(fd, b) // one that is lost is as good as one not asked
		return true
	}
	trip := now - int64(binary.BigEndian.Uint64(b[1:]))
	if trip < 0 {
		return true
	}
	c.trips[(c.answered.Add(1)-1)%recent].Store(max(1, trip))
	if len(b) >= c.whole {
		c.proved.Store(true)
	}
	return true
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
		c.asked.Add(1)
		binary.BigEndian.PutUint64(b[1:], uint64(p.now()))
		_ = writeRaw(l.B.FD, b[:size]) // as a packet that is lost on the way
	}
}

// Crossed is half the median of the last round trips to the other machine: what packets nearly all wait there
// for processors, and to be encrypted, is a part of the way. ok is false where there are none.
func (l *Link) Crossed() (oneWay time.Duration, ok bool) {
	if l.far == nil {
		return 0, false
	}
	n := min(l.far.answered.Load(), recent)
	trips := make([]int64, 0, recent)
	for i := range n {
		if t := l.far.trips[i].Load(); t > 0 {
			trips = append(trips, t)
		}
	}
	if len(trips) == 0 {
		return 0, false
	}
	slices.Sort(trips)
	return time.Duration(trips[len(trips)/2] / 2), true
}

// Proved tells whether packets of the full length have crossed to the other machine and back.
func (l *Link) Proved() bool { return l.far == nil || l.far.proved.Load() }

// Took notes what was taken off the latency, and by how much it was too little.
func (l *Link) Took(oneWay, short time.Duration) {
	l.far.oneWay.Store(int64(oneWay))
	l.far.short.Store(int64(short))
}

func (l *Link) crossing() link.Crossing {
	c := l.far
	way, _ := l.Crossed()
	return link.Crossing{
		Way: way, OneWay: time.Duration(c.oneWay.Load()), Short: time.Duration(c.short.Load()),
		Asked: c.asked.Load(), Answered: c.answered.Load(), Proved: c.proved.Load(),
	}
}
