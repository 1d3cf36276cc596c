package dataplane

import (
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/link/userspace/packet"
)

const (
	// readBurst is how many packets are read from one port before others have their turn.
	readBurst = 16
	// handling is the way of a packet that no clock here sees: a read, and the call that hands
	// it over until its receiver's stack has it.
	handling = int64(5 * time.Microsecond)
	// maxBackdate bounds how long before the end of its read a packet may count as arrived, where
	// the time is a guess. A thread that was held up between two reads finds packets that came at any
	// time since. They must not be handed over early by more than 50 us.
	maxBackdate = int64(40 * time.Microsecond)
)

// serve does what the events of the last wait ask for, and what earlier ones left.
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

// read takes packets in from a port, of which the first had come by a time.
//
// Events come once for an arrival (EPOLLET), to each thread. One that finds another reading may
// forget its event: an arrival that the other's last read missed is an event of the other, too.
//
// A packet counts from when it came, not from when it was read: a thread that slept runs 10 to
// 100 us after the arrival that wakes it. No clock tells when a packet came, but
//
//  1. the one that woke the thread, the first that epoll tells of, came before that by what
//     waking up usually takes (alarm), the others at some time until then;
//  2. it came after the port was last found empty, which holds where the thread that woke up
//     stood still since, and finds a packet that came meanwhile;
//  3. a further packet of a burst came before its own read ended, most likely before the read of
//     the packet before it. Where the thread was held up between these two reads, the packet
//     counts from maxBackdate before the end of its own, and the time held up counts as lateness.
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
		case unix.EINTR, unix.ENETDOWN: // a packet socket says so once when its device goes down
			continue
		case unix.EAGAIN:
			t.empty = before
			return
		case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EMSGSIZE: // what a router said of an earlier packet
			if t.path == nil {
				return
			}
			continue
		case unix.EINVAL: // a packet that no virtio_net_hdr describes: the kernel let go of it
			t.out.droppedLoss.Add(1)
			continue
		default: // the device has gone with its namespace: no further event comes
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

// detachLanding returns the packet of n bytes that was read, in a buffer of its size where that
// is worth the copy, and makes room for the next. It returns nil when memory is short.
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
