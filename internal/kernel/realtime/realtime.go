// Package realtime raises the scheduling priority of processes and threads that must act on time, and pins threads to
// processors.
package realtime

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// priority is the lowest of the real-time class. Otherwise a database that uses every core delays this process by tens
// of milliseconds whatever its niceness, because kernels weigh sessions and not processes (sched_autogroup). Child
// processes start with ordinary priority: the kernel resets it.
var priority = unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}

// Process is the calling process with its ordinary priority. The methods of a nil Process do nothing.
type Process struct {
	ordinary unix.SchedAttr
}

// Current returns this process with the present priority of its first thread.
func Current() *Process {
	if a, err := unix.SchedGetAttr(unix.Getpid(), 0); err == nil {
		return &Process{*a}
	}
	return &Process{unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}}
}

// Raise gives every present thread real-time priority. Without root that is refused, and Raise does nothing. Call it
// repeatedly, because threads that the Go runtime starts later do not inherit the priority.
func (p *Process) Raise() {
	if p != nil {
		setAllThreads(priority)
	}
}

// Restore gives the threads their ordinary priority again.
func (p *Process) Restore() {
	if p != nil {
		setAllThreads(p.ordinary)
	}
}

// RaisePermanently gives real-time priority to all present and future threads of this process. The priority is below
// EmulatorPriority.
func RaisePermanently() {
	lasting := priority
	lasting.Flags &^= unix.SCHED_FLAG_RESET_ON_FORK
	setAllThreads(lasting)
}

// setAllThreads is best effort: it is refused without root.
func setAllThreads(a unix.SchedAttr) {
	_ = eachThread(func(tid int) error {
		_ = unix.SchedSetAttr(tid, &a, 0)
		return nil
	})
}

// EmulatorPriority is the SCHED_RR priority of every thread of an emulator, packet threads and Go runtime
// threads alike. Packet threads depend on runtime threads, so the latter must not wait behind normal
// processes. All threads have one priority for this reason:
//
//  1. A runtime thread scans the stack of a packet thread and loses its processor.
//  2. The packet thread wants to park and waits for the scan. The runtime yields (sched_yield) and checks
//     again, which only runs threads of the same priority.
//  3. The second packet thread does the same on the other processor. If packet threads had the higher
//     priority, they would occupy both processors forever. The kernel's real-time limit stops all three alike.
//
// With one priority, step 2 lets the scanning thread run. A runtime thread may then take the processor of a
// packet thread for a moment. The other packet thread covers this, as it does when a host takes the processor.
//
// The class is SCHED_RR, whose threads take turns, and not SCHED_FIFO, whose threads run until they sleep:
//
//  1. A thread sweeps memory and loses its processor to a thread of another emulator.
//  2. The runtime's background sweeper, on a second thread, waits for the first in a loop without a system
//     call. On the first thread's processor it would loop forever. This happened with two emulators on two
//     processors: nothing else ran.
//
// With turns of 100 ms (sched_rr_timeslice_ms) the first thread continues.
const EmulatorPriority = 20

// niceness of the threads if the real-time class is refused.
const niceness = -20

// RaiseProcess gives all present and future threads of this process the real-time class. If that is refused
// it returns the reason, and raises the niceness as far as allowed.
//
// A new thread inherits the class of its creator and may start at any moment. RaiseProcess therefore lists the
// threads until all have the class. One pass is not enough:
//
//  1. Thread 7 is listed and raised.
//  2. Thread 8 is listed but not yet raised. It starts thread 9, which has normal priority and is not listed.
//  3. Thread 9 runs a packet thread. A raised runtime thread occupies its processor and waits for it to park,
//     yielding only to its own priority. All links stopped for 0.3 s until the kernel ran normal threads.
//
// When a pass finds the class on every thread, no thread is left that could start one without the class.
func RaiseProcess() error {
	err := raiseAllThreads()
	if errors.Is(err, unix.EPERM) && leaveChildGroup() {
		err = raiseAllThreads()
	}
	if err == nil {
		return nil
	}
	// Best effort: unprivileged users may not raise the niceness either.
	_ = eachThread(func(tid int) error { return unix.Setpriority(unix.PRIO_PROCESS, tid, niceness) })
	return fmt.Errorf("real-time priority refused: %w", err)
}

func raiseAllThreads() error {
	for {
		raised := 0
		err := eachThread(func(tid int) error {
			if has, err := unix.SchedGetAttr(tid, 0); err != nil || has.Policy == unix.SCHED_RR && has.Priority == EmulatorPriority {
				return err
			}
			raised++
			return SetThread(tid, EmulatorPriority)
		})
		if err != nil || raised == 0 {
			return err
		}
	}
}

func eachThread(f func(tid int) error) error {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			return err
		}
		if err := f(tid); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// SetThread sets the SCHED_RR priority of a thread; 0 is the calling thread.
func SetThread(tid int, priority uint32) error {
	return unix.SchedSetAttr(tid, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: priority,
	}, 0)
}

// PinThread pins the calling thread, number thread of so many, to one allowed processor. The threads are
// spread evenly. An unpinned thread follows the processes that it serves, so that two threads may meet.
func PinThread(thread, of int) error {
	var allowed, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return fmt.Errorf("get allowed processors: %w", err)
	}
	want := thread * allowed.Count() / of
	for cpu := 0; ; cpu++ {
		if !allowed.IsSet(cpu) {
			continue
		}
		if want == 0 {
			one.Set(cpu)
			break
		}
		want--
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("pin to a processor: %w", err)
	}
	return nil
}

// leaveChildGroup moves this process to the root of the version 1 cpu controller: with RT_GROUP_SCHED,
// child groups have no real-time share.
func leaveChildGroup() bool {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return false
	}
	controllers, ok := childGroup(string(groups))
	if !ok {
		return false
	}
	root := "/sys/fs/cgroup/" + controllers + "/cgroup.procs"
	return os.WriteFile(root, []byte(strconv.Itoa(os.Getpid())), 0) == nil
}

// childGroup returns the controllers of the version 1 cpu hierarchy if the process is below its root.
func childGroup(groups string) (controllers string, ok bool) {
	for line := range strings.Lines(groups) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":") // number:controllers:path
		controllers, path, _ := strings.Cut(rest, ":")
		for c := range strings.SplitSeq(controllers, ",") {
			if c == "cpu" && path != "/" {
				return controllers, true
			}
		}
	}
	return "", false
}
