package dataplane

import "time"

// longestLead bounds how much earlier than due the thread is woken. It spins through
// what is left of it.
const longestLead = int64(50 * time.Microsecond)

// alarm makes the thread wake in time: a sleeping thread runs some 20 us after its timer
// expires, so the timer is set that much early, by what it took lately.
type alarm struct {
	lead   int64
	target int64 // when the timer expires; 0 when none runs
}

// set returns how long to sleep, at a time, for something due at another.
func (a *alarm) set(now, due int64) int64 {
	sleep := due - now - a.lead
	if sleep <= 0 {
		a.target = 0
		return 0
	}
	a.target = now + sleep
	return sleep
}

// rang learns from a wake-up at a time, by the timer or by something else.
func (a *alarm) rang(now int64, timer bool) {
	if timer && a.target > 0 {
		late := min(max(now-a.target, 0), longestLead)
		a.lead += (late - a.lead) / 8
	}
	a.target = 0
}
