package procfs

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// RunDelays counts how long the threads of processes were ready to run and waited for a processor. A thread
// is counted from its start to the last call before its end. It is not safe for concurrent use.
type RunDelays struct {
	total time.Duration
	last  map[int]time.Duration // by thread
	buf   [64]byte
}

// Update reads the threads of processes, and returns what all that it has ever seen have waited. known is false
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
			// Less than before is of another thread that was given the same ID.
			if was := r.last[tid]; delay >= was {
				delay -= was
			}
			r.total += delay
		}
	}
	r.last = now
	return r.total, known
}

// read reads "718563 2403 1" of /proc/PID/task/TID/schedstat: nanoseconds on a processor, nanoseconds of
// waiting for one, and how often it got one.
func (r *RunDelays) read(pid int, tid string) (time.Duration, bool) {
	f, err := os.Open(procPath(pid, "task/"+tid+"/schedstat"))
	if err != nil {
		return 0, false
	}
	defer f.Close()
	n, _ := f.Read(r.buf[:]) // nothing is read of a thread that has ended
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
