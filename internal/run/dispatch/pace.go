package dispatch

import (
	"time"

	"golang.org/x/sys/unix"
)

// How often the engine is asked: seldom enough that following costs share of a core, this
// process and the clients that it starts together, and not more often than every pollEvery.
const (
	pollEvery  = 2 * time.Second
	share      = 0.008 // and less than 1 % with what the garbage collector does between steps
	pollAtMost = 5 * time.Minute
)

// pace tells how long to wait after a step, by what the step used. What an engine carries to and from
// machines meanwhile is work, and counts for nothing.
type pace struct {
	every time.Duration
	used  func() time.Duration
	begun time.Duration
	owed  time.Duration // of waits that were cut at pollAtMost
}

func newPace() *pace { return &pace{every: pollEvery, used: processorTime} }

// begin begins a step.
func (p *pace) begin() { p.begun = p.used() }

// next is how long to wait until what the step used is share of the time. What is longer than pollAtMost, since summary.json of a large
// run was written, is left to the waits that follow.
func (p *pace) next() time.Duration {
	p.owed += time.Duration(float64(p.used()-p.begun) / share)
	wait := min(max(p.every, p.owed), pollAtMost)
	p.owed = max(0, p.owed-wait)
	return wait
}

// processorTime is what this process and the children that have ended used.
func processorTime() (sum time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) == nil { // it fails for bad arguments alone
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}
