package dataplane

import "time"

// Each thread stands in for the others, whose processors may be taken away at any moment.
//
// An arrival wakes every thread that sleeps in epoll, each of which watches every port. The
// first to come reads it; to the others there is nothing to do. So a packet that arrives
// while a processor is away is read by a thread that has one.
//
// A packet that is due is handed over by the first thread that is awake. Some thread has to
// be, and says so: its vouch is when it will look at the queue next.
//
//		vouch ≤ due           it will look in time: the others set their alarms by grace later
//		vouch > due           it sleeps past that: another has to
//		vouch + grace < now   it should have looked and has not: its processor is away
//
//	 1. Thread 0 sleeps until a packet is due and its processor is taken away. Thread 1 has set
//	    its alarm to due + grace, finds the packet, and hands it over: late by grace.
//	 2. While thread 0 stays away its vouch is past by more than grace, so that thread 1 sets its
//	    alarm to the due times themselves: nothing is late.
//	 3. Two threads that trust each other would both come late: so the one with the lower number
//	    is trusted and never trusts.
//	 4. Thread 1 reads a packet and becomes due before thread 0 wakes up, which sleeps past that:
//	    its vouch is later, thread 1 does not trust it. Thread 0 was woken by the same arrival,
//	    waits until the packet is in its queue (handover), and so knows of it as thread 1's stand-in.
const (
	// grace is how late a packet is when its thread has no processor; twice the time
	// between timer and thread on a busy machine, lest the stand-in work for nothing.
	grace = int64(200 * time.Microsecond)
	// handover is how long a thread waits for another that is reading the same port.
	handover = int64(20 * time.Microsecond)
)

// nextWake returns when the thread should look at the queue next, and vouches for it.
func (w *worker) nextWake(now int64) int64 {
	due := w.queue.next.Load()
	if due == never {
		w.vouch.Store(never)
		return never
	}
	if w.delegates(now, due) {
		due += grace
	}
	w.vouch.Store(due)
	return due
}

// delegates tells whether another thread will look at the queue before due.
func (w *worker) delegates(now, due int64) bool {
	for _, other := range w.workers[:w.number] {
		if v := other.vouch.Load(); v <= due && v+grace > now {
			return true
		}
	}
	return false
}

// wait sleeps until there may be something to do, and returns the number of events that
// ended it.
func (w *worker) wait(now int64) int {
	n := w.sleep(now)
	w.signs.Add(1)
	woke := w.now()
	w.alarm.observe(woke, n == 0)
	w.rest.addIdle(now, woke)
	w.standby.watch(woke, w.primarySigns())
	w.came = woke - handling
	w.first = w.came
	if n > 0 {
		w.first -= w.alarm.wakeLatency(woke - now)
	}
	return n
}

func (w *worker) sleep(now int64) int {
	if len(w.backlog) > 0 {
		return w.poll.wait(0)
	}
	look := w.nextWake(now)
	switch {
	case w.flow.shouldPause() && look > now+2*pauseFor:
		sleepRaw(pauseFor)
		n := w.poll.wait(0)
		w.flow.gap = n == 0
		return n
	case w.contended():
		nap := glance
		if look < now+glance+maxLead {
			nap = w.alarm.set(now, look)
		}
		sleepRaw(nap)
		return w.poll.wait(0)
	case w.standby.naps && (look > now+grace || !w.options.SpareCPU):
		nap := w.standby.glanceTime()
		if look > now {
			nap = min(nap, look-now)
		}
		w.vouch.Store(now + nap)
		sleepRaw(nap)
		if w.standby.covered(w.primarySigns()) {
			return 0
		}
		return w.poll.wait(0)
	case look != never:
		return w.poll.wait(w.alarm.set(now, look))
	case w.pool.idle() > 0 && w.number == 0:
		return w.poll.wait(trimEvery)
	}
	if n := w.poll.wait(drowsy); n != 0 {
		return n
	}
	return w.poll.block()
}
