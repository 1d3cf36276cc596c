// Package realtime is a priority for this process above that of others, for as long as what it
// does must be done on time.
package realtime

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// priority is the least of the real-time class, and uses little of it: a database that keeps
// every core busy would hold this process up by tens of milliseconds otherwise, whatever its
// niceness, since kernels weigh sessions and not processes (sched_autogroup). What the process
// starts has the ordinary priority: the kernel resets it.
var priority = unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}

// Process is this process, as who owns it hands it on to what may be urgent. That of a nil
// Process is never.
type Process struct {
	ordinary unix.SchedAttr
}

// Current is the process with the priority that it has now: that of its first thread.
func Current() *Process {
	if a, err := unix.SchedGetAttr(unix.Getpid(), 0); err == nil {
		return &Process{*a}
	}
	return &Process{unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}}
}

// Raise gives every thread the priority, where it may: without root it is refused, and
// events say themselves how late they are. Threads that the Go runtime starts later do not
// have it: call it again from time to time.
func (p *Process) Raise() {
	if p != nil {
		setAllThreads(priority)
	}
}

// RaisePermanently gives the priority to this process, and to every thread that it starts from now on: to one that
// does nothing else than what must be done on time. It is below that of emulators.
func RaisePermanently() {
	lasting := priority
	lasting.Flags &^= unix.SCHED_FLAG_RESET_ON_FORK
	setAllThreads(lasting)
}

// Restore gives the threads their ordinary priority again.
func (p *Process) Restore() {
	if p != nil {
		setAllThreads(p.ordinary)
	}
}

func setAllThreads(a unix.SchedAttr) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.SchedSetAttr(id, &a, 0) // refused without root
		}
	}
}
