package netem

import (
	"errors"
	"fmt"
	"math"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"skerry/internal/link"
)

// The qdiscs of a device and their handles:
//
//	prio 1:               puts every packet into its first band
//	├── netem 2:          draws loss, corruption and so on, then latency and jitter
//	│   └── hfsc 3:       the bandwidth: its one class, 3:1, sends at that rate
//	│       └── bfifo 4:  the queue, bounded in bytes
//	└── blackhole 5:      drops the packets of wake
//
// Packets pass the latency first and the bandwidth second. While neither changes, each packet arrives at the same
// time as with the other order.
//
// The bandwidth uses hfsc because hfsc recomputes the departure of the next packet when its rate changes. The
// alternatives do not:
//
//   - tbf fills its bucket at every change, so a trace of short steps would carry up to one extra MTU per step.
//     After a pause it sends an MTU at once.
//   - htb counts its debt in time: after a change the next packet waits as long as the last one took at the old rate.
//   - netem's own rate fixes the departure of a packet on entry.
const (
	treeMajor = iota + 1
	netemMajor
	rateMajor
	queueMajor
	wakeMajor
)

var (
	treeHandle  = netlink.MakeHandle(treeMajor, 0)
	netemHandle = netlink.MakeHandle(netemMajor, 0)
	rateHandle  = netlink.MakeHandle(rateMajor, 0)
	queueHandle = netlink.MakeHandle(queueMajor, 0)
	wakeHandle  = netlink.MakeHandle(wakeMajor, 0)

	firstBand  = netlink.MakeHandle(treeMajor, 1)
	secondBand = netlink.MakeHandle(treeMajor, 2)
	netemChild = netlink.MakeHandle(netemMajor, 1)
	rateClass  = netlink.MakeHandle(rateMajor, 1)
)

// Attributes from linux/pkt_sched.h.
const (
	attrStabBase = 1 // struct tc_sizespec
	attrHFSCRate = 1 // the real-time service curve
)

const (
	unlimited = math.MaxUint32
	// superPacket is the most that hfsc charges for a TCP super-packet: 64 KiB and the headers of its packets.
	superPacket = 72 << 10
)

// shape configures the qdiscs below netem.
type shape struct {
	rate  uint32 // byte/s
	queue uint32 // bytes
	// layer3 charges packets without their Ethernet headers.
	layer3 bool
}

// newShape returns the shape of a direction. The queue has room for at least one packet, because packets pass
// through it even on an idle link.
func newShape(q link.Quality, mtu int) shape {
	if q.Bandwidth == 0 {
		return shape{rate: unlimited, queue: unlimited}
	}
	s := shape{rate: clampUint32(q.Bandwidth / 8), layer3: drawsEach(q)}
	least := int64(mtu)
	if !s.layer3 {
		least = max(superPacket, least+etherHeader)
	}
	s.queue = clampUint32(max(q.QueueBytes(), least))
	return s
}

// clampUint32 limits n to 1 and the largest 32-bit number.
func clampUint32(n int64) uint32 { return uint32(max(1, min(n, math.MaxUint32))) }

// build creates the device's qdiscs.
func (d *device) build(netemOptions *nl.RtAttr, s shape) error {
	const create = unix.NLM_F_CREATE | unix.NLM_F_EXCL
	for _, q := range []qdisc{
		{handle: treeHandle, parent: netlink.HANDLE_ROOT, kind: "prio", attrs: treeAttrs(s)},
		{handle: wakeHandle, parent: secondBand, kind: "blackhole"},
		{handle: netemHandle, parent: firstBand, kind: Name, attrs: []*nl.RtAttr{netemOptions}},
		{handle: rateHandle, parent: netemChild, kind: "hfsc", attrs: []*nl.RtAttr{hfscOptions()}},
		rateRequest(s), queueRequest(s),
	} {
		if err := d.send(create, q); err != nil {
			return err
		}
	}
	return nil
}

// change changes the qdiscs in place, without losing packets. hfsc recomputes when waiting packets may leave, but
// if the rate rises its timer still runs for the old rate, so change wakes it.
func (d *device) change(netemOptions *nl.RtAttr, was, next shape) error {
	var changes []qdisc
	if next.layer3 != was.layer3 {
		changes = append(changes, qdisc{handle: treeHandle, parent: netlink.HANDLE_ROOT, kind: "prio", attrs: treeAttrs(next)})
	}
	changes = append(changes, qdisc{handle: netemHandle, parent: firstBand, kind: Name, attrs: []*nl.RtAttr{netemOptions}})
	if next.queue != was.queue {
		changes = append(changes, queueRequest(next))
	}
	if next.rate != was.rate {
		changes = append(changes, rateRequest(next))
	}
	for _, q := range changes {
		if err := d.send(0, q); err != nil {
			return err
		}
	}
	if next.rate > was.rate {
		return d.wake()
	}
	return nil
}

// wake makes the kernel run the device's qdiscs by sending a packet to the second band.
func (d *device) wake() error {
	frame := make([]byte, etherHeader)
	frame[12], frame[13] = 0x88, 0xb5 // IEEE 802's ethertype for local experiments
	err := unix.Sendto(d.space.packets, frame, 0, &unix.SockaddrLinklayer{Ifindex: d.index, Protocol: 0xb588})
	// A device that is down has no waiting packets.
	if err == nil || errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.ENETDOWN) {
		return nil
	}
	return fmt.Errorf("run qdiscs of %s: %w", d.name, err)
}

// openPackets opens the packet socket for wake.
func openPackets() (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open packet socket: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, int(secondBand)); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("set priority of packet socket: %w", err)
	}
	return fd, nil
}

// treeAttrs configures two bands, with all priorities in the first one. With layer3 they also subtract the Ethernet
// header for all qdiscs below.
func treeAttrs(s shape) []*nl.RtAttr {
	const priorities = 16
	bands := append(uint32s(2), make([]byte, priorities)...)
	attrs := []*nl.RtAttr{nl.NewRtAttr(nl.TCA_OPTIONS, bands)}
	if s.layer3 {
		overhead := int32(-etherHeader)
		stab := nl.NewRtAttr(nl.TCA_STAB, nil)
		stab.AddRtAttr(attrStabBase, uint32s(0, uint32(overhead), 0, 0, 0, 0))
		attrs = append(attrs, stab)
	}
	return attrs
}

// hfscOptions makes the one class the default.
func hfscOptions() *nl.RtAttr { return nl.NewRtAttr(nl.TCA_OPTIONS, []byte{1, 0}) }

func rateRequest(s shape) qdisc {
	options := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	options.AddRtAttr(attrHFSCRate, uint32s(0, 0, s.rate))
	return qdisc{class: true, handle: rateClass, parent: rateHandle, kind: "hfsc", attrs: []*nl.RtAttr{options}}
}

func queueRequest(s shape) qdisc {
	return qdisc{handle: queueHandle, parent: rateClass, kind: "bfifo",
		attrs: []*nl.RtAttr{nl.NewRtAttr(nl.TCA_OPTIONS, uint32s(s.queue))}}
}

// qdisc is a netlink request for a qdisc or for a class of one.
type qdisc struct {
	class          bool
	handle, parent uint32
	kind           string
	attrs          []*nl.RtAttr
}

func (d *device) send(flags uint16, q qdisc) error {
	message := uint16(unix.RTM_NEWQDISC)
	if q.class {
		message = unix.RTM_NEWTCLASS
	}
	req := &nl.NetlinkRequest{
		NlMsghdr: unix.NlMsghdr{Len: unix.SizeofNlMsghdr, Type: message, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK | flags},
		Sockets:  d.space.sockets,
	}
	req.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(d.index), Handle: q.handle, Parent: q.parent})
	req.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated(q.kind)))
	for _, a := range q.attrs {
		req.AddData(a)
	}
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("%s: %w", q.kind, err)
	}
	return nil
}
