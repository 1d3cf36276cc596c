package netem

import (
	"encoding/binary"
	"math"

	"github.com/vishvananda/netlink/nl"

	"skerry/internal/link"
)

// Attributes of netem, from linux/pkt_sched.h.
const (
	attrCorrelation = 1
	attrDelayTable  = 2
	attrReorder     = 3
	attrCorrupt     = 4
	attrLoss        = 5
	attrRate        = 6
	attrRate64      = 8
	attrLatency64   = 10
	attrJitter64    = 11
	attrSeed        = 14

	lossGilbertElliott = 2
)

const (
	// etherHeader is the part of the kernel's packet length that is not layer 3.
	etherHeader = 14
	// boundless is netem's own rate in byte/s: a nanosecond per kilobyte. netem keeps packets of different
	// delays in order only if it has a rate.
	boundless = 1 << 40
	// inFlight bounds the packets in the latency stage. Labs stay far below it.
	inFlight = 1 << 20
)

// options encodes q for netem. Every attribute is always present: a change without an attribute would
// keep its old value.
func (t tables) options(q link.Quality, seed uint64) *nl.RtAttr {
	loss, burst := combinedLoss(q)
	gap := uint32(0)
	if q.Reorder > 0 {
		gap = 1
	}
	// struct tc_netem_qopt; latency and jitter have attributes of their own.
	o := nl.NewRtAttr(nl.TCA_OPTIONS, uint32s(0, inFlight, probability32(loss), gap, probability32(q.Duplicate), 0))
	o.AddRtAttr(attrLatency64, nl.Uint64Attr(uint64(q.Latency)))
	o.AddRtAttr(attrJitter64, nl.Uint64Attr(uint64(q.Jitter)))
	if q.Jitter > 0 {
		o.AddRtAttr(attrDelayTable, t.get(q.Distribution))
	}
	o.AddRtAttr(attrCorrelation, uint32s(0, 0, 0))
	o.AddRtAttr(attrReorder, uint32s(probability32(q.Reorder), 0))
	o.AddRtAttr(attrCorrupt, uint32s(probability32(q.Corrupt), 0))
	if burst != nil {
		o.AddRtAttr(attrLoss, nil).AddRtAttr(lossGilbertElliott,
			uint32s(probability32(burst.P), probability32(burst.R), probability32(burst.H), probability32(1-burst.K)))
	}
	o.AddRtAttr(attrRate, uint32s(math.MaxUint32, 0, 0, 0))
	o.AddRtAttr(attrRate64, nl.Uint64Attr(boundless))
	o.AddRtAttr(attrSeed, nl.Uint64Attr(seed))
	return o
}

// combinedLoss returns netem's independent loss and its burst model; netem supports one at a time. With both, a
// packet that the model delivers is delivered with probability 1-Loss, which is the model with smaller H and K.
func combinedLoss(q link.Quality) (float64, *link.GilbertElliott) {
	switch {
	case q.Down:
		return 1, nil
	case q.Burst == nil:
		return q.Loss, nil
	}
	both := *q.Burst
	both.H *= 1 - q.Loss
	both.K *= 1 - q.Loss
	return 0, &both
}

// probability32 scales a probability to netem's range, where 2^32-1 is 1.
func probability32(p float64) uint32 { return uint32(math.Round(p * math.MaxUint32)) }

func uint32s(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return b
}

// tableSize is the size of iproute2's tables; netem divides their values by tableScale.
const (
	tableSize  = 4096
	tableScale = 8192
)

// tables caches distribution tables: computing one takes longer than a change in the kernel.
type tables map[link.Distribution][]byte

func (t tables) get(d link.Distribution) []byte {
	if t[d] == nil {
		t[d] = delayTable(d)
	}
	return t[d]
}

// delayTable encodes a distribution as 16-bit numbers in host byte order.
func delayTable(d link.Distribution) []byte {
	var b []byte
	for _, x := range d.Table(tableSize) {
		b = binary.NativeEndian.AppendUint16(b, uint16(int16(math.Round(x*tableScale))))
	}
	return b
}
