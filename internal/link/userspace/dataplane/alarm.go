package dataplane

import "time"

const (
	// mostLead bounds how much earlier than due a thread is woken. It spins through
	// what is left of it.
	maxLead = int64(100 * time.Microsecond)
	// leadUp and leadDown are how a lead follows wake-ups that took longer, and those that
	// did not: it settles where one of five takes longer.
	leadUp   = int64(2000)
	leadDown = int64(500)
	// deep is the sleep after which a processor may have gone to sleep itself, which makes it
	// slower to wake up: on a virtual machine, the host has to be asked.
	deepSleep = int64(400 * time.Microsecond)
	// usualUp and usualDown are how the usual time of waking up follows what it took: it
	// settles where three of four take longer, lest a packet be sent on too soon. mostUsual
	// bounds by how much it may.
	usualUp   = int64(250)
	usualDown = int64(750)
	maxUsual  = int64(25 * time.Microsecond)
)

// alarm makes the thread wake in time: a sleeping thread runs 20 to 100 us after its timer
// expires, so the timer is set that much early, by what it took lately after a sleep as long.
type alarm struct {
	lead   [2]int64 // after short and after deep sleeps
	quick  [2]int64 // what waking up takes at least, nearly always
	class  int      // of the sleep under way
	target int64    // when the timer expires; 0 when none runs
}

// set returns how long to sleep, at a time, for something due at another.
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

// observe learns from a wake-up at a time, by the timer or by something else.
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

// wakeLatency is what waking up takes at least, nearly always, after a sleep of a length.
func (a *alarm) wakeLatency(slept int64) int64 { return a.quick[sleepClass(slept)] }

func sleepClass(sleep int64) int {
	if sleep > deepSleep {
		return 1
	}
	return 0
}
