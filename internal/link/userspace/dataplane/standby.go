package dataplane

import "time"

// Each arrival wakes every thread, though one is enough: a wake-up in vain costs as much as the
// other's work. While the first thread is seen to go on, the others glance at it now and then in
// place of being woken. What counts as a sign of it depends on whether the others may help:
//
//	the first thread sleeps often     it has processor and time: nothing is left for the others
//	it takes packets in, and never    more flows than it can do. Where processors are to spare the
//	sleeps                            others help. Where there are none, the next thread has only
//	                                  what the senders and receivers of these packets need, and two
//	                                  threads carry less than one: taking packets in is a sign, too
//	no sign for a glance              its processor is away: the others watch the devices again
const (
	// glance is how often a thread on stand-by looks for a sign of the first: the longest that
	// packets wait when the first thread's processor is taken away.
	glance = int64(400 * time.Microsecond)
	// rareGlance is the same in a flood, of which many packets wait for longer anyway: on a virtual machine a
	// glance costs 25 us of a processor.
	rareGlance = 2 * glance
	// standbySpan is how long signs are counted before a thread goes on stand-by.
	standbySpan = int64(5 * time.Millisecond)
	// standbyFrom is how many signs there are in that time: glances are fewer.
	standbyFrom = int64(30)
	// floodFrom is how many there are of a flood.
	floodFrom = int64(500)
)

// standby tells a thread whether another's signs let it glance.
type standby struct {
	naps  bool
	flood bool
	since int64
	signs int64 // the other's, at since
	last  int64 // the other's, at the last glance
}

// watch looks at a time at how many signs the other thread has given.
func (s *standby) watch(now, signs int64) {
	if now-s.since < standbySpan {
		return
	}
	rate := (signs - s.signs) * standbySpan
	s.naps, s.flood = rate >= standbyFrom*(now-s.since), rate >= floodFrom*(now-s.since)
	s.since, s.signs, s.last = now, signs, signs
}

// glanceTime is how long to nap.
func (s *standby) glanceTime() int64 {
	if s.flood {
		return rareGlance
	}
	return glance
}

// covered tells whether the other thread has given a sign since the last glance, and ends the
// stand-by where it has not.
func (s *standby) covered(signs int64) bool {
	s.naps = s.naps && signs != s.last
	s.last = signs
	return s.naps
}

// noteRead has the thread go on, at a time, after a packet that it took in.
func (w *worker) noteRead(now int64) {
	if w.options.SpareCPU {
		return
	}
	w.signs.Add(1)
	w.vouch.Store(now) // it looks at the queue after each packet
}

// contended tells whether all that this thread found in its last look was being read by another, for
// longer than one packet takes: each arrival of a flood would wake it to wait for the other in vain, on the
// processor of who sends. It glances then, as on stand-by.
func (w *worker) contended() bool { return w.held && !w.served }

// primarySigns are those of the first thread, 0 for the first thread itself, which is on stand-by
// for nobody.
func (w *worker) primarySigns() int64 {
	if w.number == 0 {
		return 0
	}
	return w.workers[0].signs.Load()
}
