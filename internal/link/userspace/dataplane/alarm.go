package dataplane

import "time"

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
