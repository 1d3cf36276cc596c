package dataplane

import (
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/link/userspace/packet"
)

const (
	// readBurst is how many packets are read from one port, and sendBurst how many
	// handed over, before others have their turn.
	readBurst = 16
	sendBurst = 64
	// trimEvery is how often buffers that nobody needs are let go.
	trimEvery = int64(time.Second)
	// drowsy is how long nothing may happen before the thread gives its Go processor
	// away: keeping it costs the runtime 1 % of a core, in vain attempts to preempt it.
	drowsy = int64(100 * time.Millisecond)
)

func (p *Plane) run() {
	setTimerSlack()
	if p.options.RealTime {
		p.rest.begin(p.now())
	}
	for !p.stopping {
		now := p.deliver(p.now(), sendBurst)
		if p.options.RealTime {
			now = p.pause(now)
		}
		if now-p.trimmed > trimEvery {
			p.pool.Trim()
			p.trimmed = now
		}
		p.wait(now)
	}
}

// pause rests when a real-time thread has to.
func (p *Plane) pause(now int64) int64 {
	owed := p.rest.owed(now)
	if owed == 0 {
		return now
	}
	sleepRaw(owed)
	woke := p.now()
	p.rest.slept(now, woke)
	return woke
}

// wait sleeps until there is something to do, and does what came from outside.
func (p *Plane) wait(now int64) {
	n := p.sleep(now)
	woke := p.now()
	p.alarm.rang(woke, n == 0)
	if p.options.RealTime {
		p.rest.slept(now, woke)
	}
	for i := range n {
		number := p.poll.events[i].Fd
		if number == 0 {
			p.work()
			continue
		}
		if t := p.ports[number]; t != nil {
			p.read(t)
		}
	}
}

// sleep returns the number of events that ended it.
func (p *Plane) sleep(now int64) int {
	if p.flow.pauses() && (len(p.heap) == 0 || p.heap[0].due > now+2*pauseFor) {
		sleepRaw(pauseFor)
		n := p.poll.wait(0)
		p.flow.gap = n == 0
		return n
	}
	switch {
	case len(p.heap) > 0:
		return p.poll.wait(p.alarm.set(now, p.heap[0].due))
	case p.pool.Idle() > 0:
		return p.poll.wait(trimEvery)
	}
	if n := p.poll.wait(drowsy); n != 0 {
		return n
	}
	return p.poll.block()
}

// deliver hands over what is due, at most so many packets, and returns the time.
func (p *Plane) deliver(now int64, most int) int64 {
	for range most {
		if len(p.heap) == 0 {
			return now
		}
		d := p.heap[0]
		if d.due > now {
			if now = p.now(); d.due > now {
				return now
			}
		}
		k, due := d.shaper.Next()
		p.reschedule(d)
		p.send(d, k, now-due)
		now = p.now()
	}
	return now
}

// reschedule gives d the place in the heap that its first packet asks for.
func (p *Plane) reschedule(d *direction) {
	due, waits := d.shaper.Waits()
	switch {
	case !waits:
		p.heap.remove(d)
	case d.place < 0 || due != d.due:
		d.due = due
		p.heap.update(d)
	}
}

// read takes packets in from a port.
func (p *Plane) read(t *port) {
	for range readBurst {
		n, errno := readRaw(t.fd, p.landing.Room())
		switch errno {
		case 0:
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return
		case unix.EINVAL: // a packet that no virtio_net_hdr describes: the kernel let go of it
			t.out.droppedLoss.Add(1)
			continue
		default:
			// The device has gone with its namespace, or is down. Were it watched
			// on, an error that stays would keep the thread busy.
			p.fault(t, errno)
			return
		}
		now := p.now()
		p.flow.add(now, n)
		if p.landing.Parse(n, t.linkHeader) {
			p.admit(t.out, p.land(n), now)
		}
		if len(p.heap) > 0 && p.heap[0].due <= now {
			p.deliver(now, 1)
		}
	}
}

// fault stops reading a port whose device has gone for good.
func (p *Plane) fault(t *port, errno unix.Errno) {
	if errno != unix.ENETDOWN { // a packet socket says so once when its device goes down
		p.ignore(t)
	}
}

// land returns the packet of n bytes that was read, in a buffer of its size where that
// is worth the copy, and makes room for the next. It returns nil when memory is short.
func (p *Plane) land(n int) *packet.Packet {
	k := p.pool.Get(n)
	if k == nil {
		return nil
	}
	if len(k.Room()) < len(p.landing.Room()) {
		p.landing.Copy(k)
		return k
	}
	k, p.landing = p.landing, k
	return k
}
