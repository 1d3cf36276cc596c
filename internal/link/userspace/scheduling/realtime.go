// Package scheduling gives threads the priority that keeps time on a busy machine.
package scheduling

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// EmulatorPriority within SCHED_RR, of every thread of the process: those that keep time and those of
// the Go runtime, which must not wait behind normal processes either, since the ones that keep
// time may need them to go on. It is one priority for all:
//
//  1. A thread of the runtime scans the stack of one that keeps time, and loses its processor.
//  2. That one wants to park, and waits for the scan: the runtime yields (sched_yield) and looks
//     again, which lets nobody run but threads of its own priority.
//  3. The second thread that keeps time does the same on the other processor. With a priority
//     above the scanning thread's, both processors are theirs for ever; the kernel's limit on
//     real-time threads stops all three alike.
//
// With one priority, 2. lets the scanning thread run. A thread that keeps time may find its
// processor taken by the runtime for a moment; the other stands in for it, as it does where a
// host takes the processor.
//
// And the class is SCHED_RR, whose threads take turns, rather than SCHED_FIFO, whose threads run until
// they sleep:
//
//  1. A thread sweeps memory, and loses its processor to one of another emulator.
//  2. The runtime's background sweeper, on a second thread, waits for the first by looking again and
//     again, without a system call. On the first thread's processor it would do so for ever: this was
//     seen with two emulators on two processors, and nothing else ran.
//
// With turns, which are 100 ms long by default (sched_rr_timeslice_ms), the first thread sweeps on.
const EmulatorPriority = 20

// niceness is what threads get where the real-time class is refused.
const niceness = -20

// RaiseProcess gives every thread of this process, and those they will start, the real-time
// class. Where it is refused it returns why; the threads then are as nice as allowed.
//
// A thread starts with the class of the one that starts it, and may do so at any moment. So the
// threads are listed again until none is found that has not the class. One listing is not enough:
//
//  1. Thread 7 is listed, and raised.
//  2. Thread 8, listed but not raised yet, starts thread 9, which is normal and not in the list.
//  3. Thread 9 runs one of those that keep time. A thread of the runtime, raised, has its processor and
//     waits for it to park as above. That yields to threads of its own priority, which thread 9 is
//     not: all links stood still for 0.3 s, until the kernel gave normal threads their share.
//
// Where a listing finds the class everywhere, no thread is left that could start one without it.
func RaiseProcess() error {
	err := raiseAllThreads()
	if errors.Is(err, unix.EPERM) && leaveChildGroup() {
		err = raiseAllThreads()
	}
	if err == nil {
		return nil
	}
	// Best effort: this is refused to users, too.
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

// SetThread gives a thread, 0 for the calling one, a priority within SCHED_RR.
func SetThread(tid int, priority uint32) error {
	return unix.SchedSetAttr(tid, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: priority,
	}, 0)
}

// PinThread keeps the calling thread, one of so many, on a processor of its own among those it may
// run on, as far from the others as their numbers go. A thread that may move follows the
// processes it serves, and two of them meet.
func PinThread(thread, of int) error {
	var allowed, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return fmt.Errorf("ask for processors: %w", err)
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

// leaveChildGroup moves this process to the root of the version 1 cpu controller: with
// RT_GROUP_SCHED, its child groups have no real-time share.
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

// childGroup finds in /proc/self/cgroup the hierarchy of the version 1 cpu controller, when
// the process is not in its root.
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
