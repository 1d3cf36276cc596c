package dataplane

import (
	"time"
)

// Each thread covers for the others, whose processors may be taken away at any moment.
//
// An arrival wakes every thread that sleeps in epoll, because each thread watches every port. The first one reads
// the port; the others find nothing to do. A packet that arrives while a processor is away is therefore read by a
// thread that has one.
//
// A due packet is delivered by the first thread that is awake. Some thread must be awake, and publishes this: its
// vouch is the time of its next check of the queue.
//
//		vouch ≤ due           it will check in time: the others set their alarms grace later
//		vouch > due           it sleeps past that time: another thread must wake up
//		vouch + grace < now   it should have checked and did not: its processor is away
//
//	 1. Thread 0 sleeps until a packet is due and loses its processor. Thread 1 has set its alarm to due + grace,
//	    finds the packet and delivers it late by grace.
//	 2. While thread 0 stays away, its vouch is past by more than grace. Thread 1 sets its alarm to the due times
//	    themselves: nothing is late.
//	 3. Two threads that delegate to each other would both be late. So a thread delegates only to lower numbers.
//	 4. Thread 1 reads a packet that is due before thread 0 wakes up. The vouch of thread 0 is later, so thread 1
//	    does not delegate. The same arrival woke thread 0, which waits until the packet is in its queue (handover)
//	    and so can cover for thread 1.
const (
	// grace is the lateness of a packet whose thread has no processor. It is twice the usual timer latency
	// of a busy machine, so that the second thread does not wake up in vain.
	grace = int64(200 * time.Microsecond)
	// handover is how long a thread waits for another one that is reading the same port.
	handover = int64(20 * time.Microsecond)
)

// nextWake returns when the thread must check the queue next, and publishes it as its vouch.
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

// delegates reports whether another thread will check the queue before due.
func (w *worker) delegates(now, due int64) bool {
	for _, other := range w.workers[:w.number] {
		if v := other.vouch.Load(); v <= due && v+grace > now {
			return true
		}
	}
	return false
}

// wait sleeps until there may be work, and returns the number of events.
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
	wake := w.nextWake(now)
	switch {
	case w.flow.shouldPause() && wake > now+2*pauseFor:
		sleepRaw(pauseFor)
		n := w.poll.wait(0)
		w.flow.gap = n == 0
		return n
	case w.contended():
		nap := glance
		if wake < now+glance+maxLead {
			nap = w.alarm.set(now, wake)
		}
		sleepRaw(nap)
		return w.poll.wait(0)
	case w.standby.naps && (wake > now+grace || !w.options.SpareCPU):
		nap := w.standby.glanceTime()
		if wake > now {
			nap = min(nap, wake-now)
		}
		w.vouch.Store(now + nap)
		sleepRaw(nap)
		if w.standby.covered(w.primarySigns()) {
			return 0
		}
		return w.poll.wait(0)
	case wake != never:
		return w.poll.wait(w.alarm.set(now, wake))
	case w.pool.idle() > 0 && w.number == 0:
		return w.poll.wait(trimEvery)
	}
	if n := w.poll.wait(drowsy); n != 0 {
		return n
	}
	return w.poll.block()
}

const (
	// maxLead bounds how early a thread is woken. It spins for the rest of the time.
	maxLead = int64(100 * time.Microsecond)
	// leadUp and leadDown adjust the lead after late and timely wake-ups. The lead settles where one
	// wake-up of five takes longer.
	leadUp   = int64(2000)
	leadDown = int64(500)
	// deepSleep is the sleep after which a processor may itself sleep and wake up more slowly: on a
	// virtual machine the host must schedule it again.
	deepSleep = int64(400 * time.Microsecond)
	// usualUp and usualDown adjust the usual wake-up latency. It settles where three of four wake-ups
	// take longer, so that no packet is sent too early. maxUsual bounds it.
	usualUp   = int64(250)
	usualDown = int64(750)
	maxUsual  = int64(25 * time.Microsecond)
)

// alarm sets timers early. A sleeping thread runs 20 to 100 us after its timer expires; the lead follows
// recent wake-ups after sleeps of similar length.
type alarm struct {
	lead   [2]int64 // after short and after deep sleeps
	quick  [2]int64 // lower bound of the wake-up latency
	class  int      // of the sleep under way
	target int64    // expiry of the timer; 0 without one
}

// set returns how long to sleep until a due time.
func (a *alarm) set(now, due int64) int64 {
	a.class = sleepClass(due - now)
	sleep := due - now - a.lead[a.class]
	if sleep <= 0 {
		a.target = 0
		return 0
	}
	a.target = now + sleep
	return sleep
}

// observe learns from a wake-up by the timer or by another event.
func (a *alarm) observe(now int64, timer bool) {
	if timer && a.target > 0 {
		lead, quick := &a.lead[a.class], &a.quick[a.class]
		if now-a.target > *quick {
			*quick = min(*quick+usualUp, maxUsual)
		} else {
			*quick = max(*quick-usualDown, 0)
		}
		if now-a.target > *lead {
			*lead = min(*lead+leadUp, maxLead)
		} else {
			*lead = max(*lead-leadDown, 0)
		}
	}
	a.target = 0
}

// wakeLatency returns the usual minimum latency of a wake-up after a sleep.
func (a *alarm) wakeLatency(slept int64) int64 { return a.quick[sleepClass(slept)] }

func sleepClass(sleep int64) int {
	if sleep > deepSleep {
		return 1
	}
	return 0
}
