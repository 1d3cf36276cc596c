package event

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// urgentNice is the priority of this process while it makes events happen: a database that
// keeps every core busy would hold it up by tens of milliseconds otherwise. What it starts on
// nodes has the ordinary priority (package host).
const urgentNice = -15

// urgent raises the priority of every thread of this process, where it may, and returns how
// to lower it again. Threads that are made meanwhile inherit it.
func urgent() (restore func()) {
	before, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return func() {}
	}
	set := func(nice int) {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return
		}
		for _, t := range threads {
			if id, err := strconv.Atoi(t.Name()); err == nil {
				_ = unix.Setpriority(unix.PRIO_PROCESS, id, nice) // refused without root: events are late then, and say so
			}
		}
	}
	set(urgentNice)
	// The system call counts from 40, for nice -20, down to 1.
	return func() { set(20 - before) }
}
