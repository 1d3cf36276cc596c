package dataplane

import "time"

// Each arrival wakes every thread, though one is enough: a wake-up in vain costs as much as the
// other's work. While the first thread is seen to keep up with many, the others glance at the
// first thread now and then in place of being woken.
//
//	the first thread sleeps often   it has processor and time: nothing is left for the others
//	it has not slept for a glance   its processor is away, or it has more than it can do:
//	                                the others watch the devices again
const (
	// glance is how often a thread on stand-by looks whether the first has slept since: the
	// longest that packets wait when the first thread's processor is taken away.
	glance = int64(400 * time.Microsecond)
	// standbySpan is how long is counted before a thread goes on stand-by.
	standbySpan = int64(5 * time.Millisecond)
	// standbyFrom is how often the first thread sleeps in that time: glances are fewer.
	standbyFrom = int64(30)
)

// standby tells a thread whether another's sleeps let it glance.
type standby struct {
	naps   bool
	since  int64
	sleeps int64 // the other's, at since
	last   int64 // the other's, at the last glance
}

// watch looks at a time at how often the other thread has slept.
func (s *standby) watch(now, sleeps int64) {
	if now-s.since < standbySpan {
		return
	}
	s.naps = (sleeps-s.sleeps)*standbySpan >= standbyFrom*(now-s.since)
	s.since, s.sleeps, s.last = now, sleeps, sleeps
}

// relies tells whether the other thread has slept since the last glance, and ends the stand-by
// where it has not.
func (s *standby) relies(sleeps int64) bool {
	s.naps = s.naps && sleeps != s.last
	s.last = sleeps
	return s.naps
}

// crowded tells whether all that this thread found in its last look was being read by another, for
// longer than one packet takes: each arrival of a flood would wake it to wait for the other in vain, on the
// processor of who sends. It glances then, as on stand-by.
func (w *worker) crowded() bool { return w.held && !w.served }

// firstSlept is how often the first thread has slept, 0 for the first thread itself, which is on
// stand-by for nobody.
func (w *worker) firstSlept() int64 {
	if w.number == 0 {
		return 0
	}
	return w.workers[0].sleeps.Load()
}
