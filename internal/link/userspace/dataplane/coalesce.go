package dataplane

import "time"

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
