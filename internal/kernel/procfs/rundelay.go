package procfs

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// RunDelays measures how long runnable threads waited for a processor. A thread counts from its start to the
// last Update before its end. It is not safe for concurrent use.
type RunDelays struct {
	total time.Duration
	last  map[int]time.Duration // by thread ID
	buf   [64]byte
}

// Update reads all threads of the processes and returns the total wait of all threads seen so far. known is false
// if the kernel does not count it (CONFIG_SCHED_INFO). Each thread costs some microseconds.
func (r *RunDelays) Update(pids []int) (total time.Duration, known bool) {
	now := make(map[int]time.Duration, len(r.last))
	known = len(pids) == 0
	for _, pid := range pids {
		threads, err := os.ReadDir(procPath(pid, "task"))
		if err != nil {
			continue // the process has ended
		}
		for _, t := range threads {
			tid, err := strconv.Atoi(t.Name())
			if err != nil {
				continue
			}
			delay, ok := r.read(pid, t.Name())
			if !ok {
				continue
			}
			known, now[tid] = true, delay
			// A smaller value belongs to a new thread with the same ID.
			if was := r.last[tid]; delay >= was {
				delay -= was
			}
			r.total += delay
		}
	}
	r.last = now
	return r.total, known
}

// read parses "718563 2403 1" in /proc/PID/task/TID/schedstat: ns on a processor, ns waiting for one, and time slices.
func (r *RunDelays) read(pid int, tid string) (time.Duration, bool) {
	f, err := os.Open(procPath(pid, "task/"+tid+"/schedstat"))
	if err != nil {
		return 0, false
	}
	defer f.Close()
	n, _ := f.Read(r.buf[:]) // a thread that has ended yields no data
	return parseRunDelay(r.buf[:n])
}

func parseRunDelay(schedstat []byte) (time.Duration, bool) {
	fields := bytes.Fields(schedstat)
	if len(fields) < 3 {
		return 0, false
	}
	ns, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return time.Duration(ns), err == nil
}
