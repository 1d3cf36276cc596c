package dataplane

import "time"

// A stream of gigabits wakes the thread for every super-packet, and each time it takes the
// core from the very process that sends. While that much flows, the thread looks at its
// devices a little less often, as network cards coalesce interrupts, and finds several
// packets at a time. Packets may be late by that.
const (
	pauseFor  = int64(20 * time.Microsecond)
	flowSpan  = int64(time.Millisecond)
	flowBytes = 512 << 10 // within flowSpan: 4 Gbit/s
)

// flow tells whether much is flowing, by what the last span carried.
type flow struct {
	since int64
	bytes int
	heavy bool
	gap   bool // nothing came during the last pause
}

// shouldPause tells whether to pause before the next look.
func (f *flow) shouldPause() bool { return f.heavy && !f.gap }

// add counts bytes at a time.
func (f *flow) add(now int64, bytes int) {
	if past := now - f.since; past > flowSpan {
		f.heavy = f.bytes > flowBytes && past < 2*flowSpan
		f.since, f.bytes = now, 0
	}
	f.bytes += bytes
	f.gap = false
}
