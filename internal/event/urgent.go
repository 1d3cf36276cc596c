package event

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// urgency is the priority of this process while it makes events happen: a database that keeps
// every core busy would hold it up by tens of milliseconds otherwise, whatever its niceness,
// since kernels weigh sessions and not processes (sched_autogroup). It is the least of the
// real-time class, and uses little of it. What the process starts has the ordinary priority:
// the kernel resets it.
var urgency = unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}

// hurry gives every thread of this process its urgency, where it may: events say themselves
// how late they are. Threads that the Go runtime starts later do not have it: it is called
// again from time to time.
func hurry() { eachThread(urgency) }

// ordinary is the priority that this process has otherwise: that of its first thread.
func ordinary() unix.SchedAttr {
	if a, err := unix.SchedGetAttr(unix.Getpid(), 0); err == nil {
		return *a
	}
	return unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}
}

// relax gives the threads an ordinary priority again.
func relax(to unix.SchedAttr) { eachThread(to) }

func eachThread(a unix.SchedAttr) {
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
