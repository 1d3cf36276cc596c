package netem

import (
	"encoding/binary"
	"math"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

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
	// etherHeader is what netem's packet length counts beyond layer 3.
	etherHeader = 14
	// boundless is the rate, in byte/s, of a link without bandwidth: a nanosecond
	// a kilobyte. Some rate there must be: only then does netem keep packets of
	// different delays in order.
	boundless = 1 << 40
	// unboundedQueue is the limit, in packets, where no bandwidth makes them wait:
	// what is in flight is bounded by the senders' socket buffers.
	unboundedQueue = 1 << 20
)

// handle is the qdisc's "1:".
var handle = netlink.MakeHandle(1, 0)

func (d *device) newQdisc(options *nl.RtAttr) error {
	return d.qdisc(unix.NLM_F_CREATE|unix.NLM_F_EXCL, options)
}

func (d *device) changeQdisc(options *nl.RtAttr) error { return d.qdisc(0, options) }

func (d *device) qdisc(flags uint16, options *nl.RtAttr) error {
	req := &nl.NetlinkRequest{
		NlMsghdr: unix.NlMsghdr{
			Len:   unix.SizeofNlMsghdr,
			Type:  unix.RTM_NEWQDISC,
			Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK | flags,
		},
		Sockets: d.space.sockets,
	}
	req.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(d.index), Handle: handle, Parent: netlink.HANDLE_ROOT})
	req.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("netem")))
	req.AddData(options)
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// options spells q out for netem. Every attribute is always there: one that is missing
// from a change would leave its old value in force.
func (t tables) options(q link.Quality, mtu int, seed uint64) *nl.RtAttr {
	loss, burst := lossOf(q)
	gap := uint32(0)
	if q.Reorder > 0 {
		gap = 1
	}
	// struct tc_netem_qopt: latency and jitter are in their own attributes.
	o := nl.NewRtAttr(nl.TCA_OPTIONS, words(0, limit(q, mtu), share(loss), gap, share(q.Duplicate), 0))
	o.AddRtAttr(attrLatency64, nl.Uint64Attr(uint64(q.Latency)))
	o.AddRtAttr(attrJitter64, nl.Uint64Attr(uint64(q.Jitter)))
	if q.Jitter > 0 {
		o.AddRtAttr(attrDelayTable, t.of(q.Distribution))
	}
	o.AddRtAttr(attrCorrelation, words(0, 0, 0))
	o.AddRtAttr(attrReorder, words(share(q.Reorder), 0))
	o.AddRtAttr(attrCorrupt, words(share(q.Corrupt), 0))
	if burst != nil {
		o.AddRtAttr(attrLoss, nil).AddRtAttr(lossGilbertElliott,
			words(share(burst.P), share(burst.R), share(burst.H), share(1-burst.K)))
	}
	rate := uint64(boundless)
	if q.Bandwidth > 0 {
		rate = max(uint64(q.Bandwidth)/8, 1)
	}
	overhead := int32(-etherHeader)
	o.AddRtAttr(attrRate, words(uint32(min(rate, math.MaxUint32)), uint32(overhead), 0, 0))
	o.AddRtAttr(attrRate64, nl.Uint64Attr(rate))
	o.AddRtAttr(attrSeed, nl.Uint64Attr(seed))
	return o
}

// lossOf gives netem's independent loss and its burst model, of which it knows one at
// a time. To have both, a packet that the model delivers is delivered only with
// probability 1-Loss: that is the model with H and K made smaller.
func lossOf(q link.Quality) (float64, *link.GilbertElliott) {
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

// limit is netem's queue in packets of the MTU: those that wait for the bandwidth and
// those under way.
func limit(q link.Quality, mtu int) uint32 {
	if q.Bandwidth == 0 {
		return unboundedQueue
	}
	underWay := float64(q.Bandwidth) / 8 * (q.Latency + jitterReach*q.Jitter).Seconds()
	packets := math.Ceil((float64(q.QueueBytes()) + underWay) / float64(mtu))
	return uint32(max(1, min(packets, math.MaxUint32)))
}

// jitterReach is how many deviations a packet may be late by jitter, rounded.
const jitterReach = 4

// share is a probability as netem has it: 2^32-1 stands for 1.
func share(p float64) uint32 { return uint32(math.Round(p * math.MaxUint32)) }

func words(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return b
}
