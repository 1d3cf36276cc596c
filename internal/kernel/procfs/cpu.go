package procfs

import (
	"bytes"
	"fmt"
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

// StealCounter measures the processor time that the hypervisor took from the machine. A read costs some
// microseconds.
type StealCounter struct {
	file *os.File
	last time.Duration
	buf  [1 << 10]byte
}

func NewStealCounter() (*StealCounter, error) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return nil, fmt.Errorf("open processor times: %w", err)
	}
	s := &StealCounter{file: f}
	s.Delta()
	return s, nil
}

// Delta returns the time stolen from all processors since the last call, in steps of 10 ms. It returns 0 if the
// counter cannot be read.
func (s *StealCounter) Delta() time.Duration {
	n, _ := s.file.ReadAt(s.buf[:], 0)
	total, ok := parseSteal(s.buf[:n])
	if !ok {
		return 0
	}
	taken := total - s.last
	s.last = total
	return taken
}

func (s *StealCounter) Close() { s.file.Close() }

// parseSteal returns the eighth number of "cpu user nice system idle iowait irq softirq steal ...".
func parseSteal(stat []byte) (time.Duration, bool) {
	const field = 8
	line, _, _ := bytes.Cut(stat, []byte{'\n'})
	fields := bytes.Fields(line)
	if len(fields) <= field {
		return 0, false
	}
	ticks, err := strconv.ParseInt(string(fields[field]), 10, 64)
	return time.Duration(ticks) * tick, err == nil
}
