package dataplane

import (
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/link/userspace/packet"
)

const (
	// readBurst bounds the packets read from one port before others are served.
	readBurst = 16
	// handling is the part of a packet's path that no clock here measures: the read, and the write until the
	// receiver's stack has the packet.
	handling = int64(5 * time.Microsecond)
	// maxBackdate bounds how long before the end of its read a packet counts as arrived if that time is
	// estimated. A delayed thread finds packets that arrived at unknown times; none may be delivered more
	// than 50 us early.
	maxBackdate = int64(40 * time.Microsecond)
)

// serve handles the events of the last wait and the backlog of earlier ones.
func (w *worker) serve(events int) {
	again := w.backlog
	w.backlog, w.held, w.served = w.backlog[:0], false, false
	for _, t := range again {
		if w.ports[t.number] == t {
			w.read(t, w.now()-handling)
		}
	}
	for i := range events {
		number := w.poll.events[i].Fd
		if number == 0 {
			w.runTasks()
		} else if t := w.ports[number]; t != nil {
			if i == 0 {
				w.read(t, w.first)
			} else {
				w.read(t, w.came)
			}
		}
	}
}

// read reads packets from a port; the first one arrived by the time came.
//
// Every thread gets one event per arrival (EPOLLET). A thread that finds another one reading may drop the event:
// an arrival that the other's last read missed is also an event for the other.
//
// A packet counts from its arrival, not from its read: a sleeping thread runs 10 to 100 us after the arrival that
// wakes it. No clock records arrivals, but three bounds hold:
//
//  1. The packet that woke the thread, the first event of epoll, arrived the usual wake-up latency earlier
//     (alarm). Other packets arrived at some time until then.
//  2. A packet arrived after the port was last read empty. This holds if the thread was stopped since then.
//  3. A further packet of a burst arrived before its read ended, most likely before the previous read. If the
//     thread was delayed between these reads, the packet counts from maxBackdate before the end of its read,
//     and the rest of the delay counts as lateness.
func (w *worker) read(t *port, came int64) {
	if !t.reading.try() {
		for until := w.now() + handover; t.reading.held.Load() && w.now() < until; {
		}
		w.held = t.reading.held.Load()
		return
	}
	defer t.reading.unlock()
	w.served = true
	came = max(came, t.empty)
	before := w.now()
	for i := range readBurst {
		var n, size int
		var errno unix.Errno
		if t.path != nil {
			n, size, errno = w.inbound.receive(t.fd)
		} else {
			n, errno = readRaw(t.fd, w.landing.Buffer())
		}
		switch errno {
		case 0:
		case unix.EINTR, unix.ENETDOWN: // a packet socket reports once that its device is down
			continue
		case unix.EAGAIN:
			t.empty = before
			return
		case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EMSGSIZE: // ICMP errors for earlier packets
			if t.path == nil {
				return
			}
			continue
		case unix.EINVAL: // a packet that no virtio_net_hdr describes: the kernel dropped it
			t.out.droppedLoss.Add(1)
			continue
		default: // the device was removed with its namespace: no event follows
			return
		}
		now := w.now()
		if held := now - maxBackdate - came; i > 0 && held > 0 {
			w.late.Load().Record(held)
			came += held
		}
		w.flow.add(now, n)
		if t.path != nil {
			w.receiveTrain(t, w.inbound.buf[:n], size, came, now)
		} else if w.landing.Parse(n, t.linkHeader) {
			w.admit(t.out, w.detachLanding(n), came, 0)
		}
		w.noteRead(now)
		before, came = now, now-handling
		if w.queue.next.Load() <= now {
			w.deliver(now, 1)
		}
	}
	w.backlog = append(w.backlog, t)
}

// detachLanding returns the packet of n bytes that was read, copied into a smaller buffer if that is
// possible, and provides a new landing buffer. It returns nil if memory is short.
func (w *worker) detachLanding(n int) *packet.Packet {
	k := w.pool.get(n)
	if k == nil {
		return nil
	}
	if len(k.Buffer()) < len(w.landing.Buffer()) {
		w.landing.Copy(k)
		return k
	}
	k, w.landing = w.landing, k
	return k
}
