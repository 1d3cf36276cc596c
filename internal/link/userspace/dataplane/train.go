package dataplane

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"skerry/internal/link/userspace/packet"
	"skerry/internal/link/userspace/shaper"
)

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
