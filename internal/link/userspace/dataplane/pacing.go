package dataplane

import (
	"time"
)

// A stream of gigabits wakes the thread for every super-packet, and each wake-up takes the core from the
// sending process. During such a stream the thread polls its devices less often, as network cards coalesce
// interrupts, and reads several packets at a time. Packets may be late by pauseFor.
const (
	pauseFor  = int64(20 * time.Microsecond)
	flowSpan  = int64(time.Millisecond)
	flowBytes = 512 << 10 // within flowSpan: 4 Gbit/s
)

// flow detects heavy traffic from the last span.
type flow struct {
	since int64
	bytes int
	heavy bool
	gap   bool // the last pause brought no packet
}

// shouldPause reports whether to pause before the next poll.
func (f *flow) shouldPause() bool { return f.heavy && !f.gap }

func (f *flow) add(now int64, bytes int) {
	if past := now - f.since; past > flowSpan {
		f.heavy = f.bytes > flowBytes && past < 2*flowSpan
		f.since, f.bytes = now, 0
	}
	f.bytes += bytes
	f.gap = false
}

// Linux stops a real-time thread that used 95 % of a second (sched_rt_runtime_us) for the rest of that
// second. Every link would stop for 50 ms. A saturated plane rests for many short times instead.
const (
	duty      = 0.93
	restShare = 1 - duty // rest owed per busy time
	burst     = int64(10 * time.Millisecond)
	shortRest = int64(200 * time.Microsecond)
)

// rest accounts for busy and idle time. credit is saved idle time.
type rest struct {
	credit float64 // ns
	woke   int64
}

func (r *rest) begin(now int64) { r.woke = now }

// owed returns how long to rest, or 0.
func (r *rest) owed(now int64) int64 {
	// The remainder of a longer time was used by the host or by the kernel's limit.
	r.credit -= float64(min(now-r.woke, burst)) * restShare
	r.woke = now
	if owed := int64(-r.credit / duty); owed > shortRest {
		return owed
	}
	return 0
}

func (r *rest) addIdle(from, to int64) {
	r.credit = min(r.credit+float64(to-from)*duty, float64(burst)*restShare)
	r.woke = to
}

// Each arrival wakes every thread, although one is enough; a useless wake-up costs as much as the work itself.
// While the first thread gives signs of progress, the others only check it periodically. What counts as a sign
// depends on SpareCPU:
//
//	the first thread sleeps often      it has processor and time, and nothing is left to do
//	it reads packets and never sleeps  there is more traffic than it can handle. With a spare CPU the others
//	                                   help. Without one, the next thread would use the processor of the
//	                                   senders and receivers, and two threads carry less than one. Reading is
//	                                   a sign then
//	no sign during a glance            its processor is away: the others watch the devices again
const (
	// glance is the interval between checks of the first thread: the longest that packets wait when it
	// loses its processor.
	glance = int64(400 * time.Microsecond)
	// rareGlance is the interval during a flood, when most packets wait longer anyway. On a virtual machine
	// a check costs 25 us of a processor.
	rareGlance = 2 * glance
	// standbySpan is the time over which signs are counted.
	standbySpan = int64(5 * time.Millisecond)
	// standbyFrom is the number of signs in that time from which a thread goes on standby.
	standbyFrom = int64(30)
	// floodFrom is the number of signs that indicates a flood.
	floodFrom = int64(500)
)

// standby decides whether a thread may rely on the first thread's signs.
type standby struct {
	naps  bool
	flood bool
	since int64
	signs int64 // signs of the first thread at since
	last  int64 // signs of the first thread at the last check
}

// watch updates the rate of signs.
func (s *standby) watch(now, signs int64) {
	if now-s.since < standbySpan {
		return
	}
	rate := (signs - s.signs) * standbySpan
	s.naps, s.flood = rate >= standbyFrom*(now-s.since), rate >= floodFrom*(now-s.since)
	s.since, s.signs, s.last = now, signs, signs
}

// glanceTime returns the interval to the next check.
func (s *standby) glanceTime() int64 {
	if s.flood {
		return rareGlance
	}
	return glance
}

// covered reports whether the first thread gave a sign since the last check, and ends the standby if not.
func (s *standby) covered(signs int64) bool {
	s.naps = s.naps && signs != s.last
	s.last = signs
	return s.naps
}

// noteRead counts a packet that was read as a sign, unless there is a spare CPU.
func (w *worker) noteRead(now int64) {
	if w.options.SpareCPU {
		return
	}
	w.signs.Add(1)
	w.vouch.Store(now) // the thread checks the queue after each packet
}

// contended reports whether another thread was reading all ports of the last events, for longer than one packet
// takes. In a flood each arrival would wake this thread in vain, on the sender's processor. It glances instead.
func (w *worker) contended() bool { return w.held && !w.served }

// primarySigns returns the signs of the first thread, 0 for the first thread itself.
func (w *worker) primarySigns() int64 {
	if w.number == 0 {
		return 0
	}
	return w.workers[0].signs.Load()
}
