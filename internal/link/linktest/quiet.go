package linktest

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// finding is the verdict on a figure that a busy machine may have affected.
type finding int

const (
	right finding = iota
	wrong         // outside the limit on a quiet machine, or consistently
	noisy         // the machine was never quiet for long enough
)

// A figure is measured up to mostTries times. It is wrong if the machine was quiet during quietTries of them.
const maxTries, minQuietTries = 20, 3

// judgeTries repeats a measurement until its relative error is within limit. An error counts as wrong if a processor was
// away for less than half of the limit, or if most tries agree: a busy machine affects each try differently. judge
// also returns a description of the tries.
func judgeTries(limit float64, try func() (off, gone float64)) (finding, string) {
	var tries strings.Builder
	var all []float64
	for n, quiet := 0, 0; n < maxTries; n++ {
		off, gone := try()
		if math.Abs(off) <= limit {
			return right, ""
		}
		fmt.Fprintf(&tries, "off by %+.2f %% with a processor away for %.2f %% of the time; ", 100*off, 100*gone)
		all = append(all, off)
		if gone <= limit/2 {
			quiet++
		}
		if quiet == minQuietTries {
			return wrong, tries.String()
		}
	}
	slices.Sort(all)
	agree := 0
	for _, off := range all {
		if math.Abs(off-all[len(all)/2]) <= limit/5 {
			agree++
		}
	}
	if agree > len(all)/2 {
		return wrong, tries.String()
	}
	return noisy, tries.String()
}

const (
	nap = time.Millisecond
	// leastAway is the lateness of a wake-up that indicates a lost processor. On an idle machine a wake-up is ten
	// times quicker.
	minAway = 500 * time.Microsecond
)

// measureAway returns how long a processor was away during do: the maximum over all processors. A thread on each processor
// sleeps repeatedly and adds up its late wake-ups.
func measureAway(do func()) time.Duration {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		all.Set(0)
	}
	var ended atomic.Bool
	var threads sync.WaitGroup
	late := make([]time.Duration, len(all)*64) // by processor
	for i := range late {
		if !all.IsSet(i) {
			continue
		}
		threads.Go(func() {
			runtime.LockOSThread() // still locked: the thread ends with the goroutine
			var one unix.CPUSet
			one.Set(i)
			_ = unix.SchedSetaffinity(0, &one) // otherwise the thread measures another processor
			for rest := unix.NsecToTimespec(int64(nap)); !ended.Load(); {
				began := time.Now()
				_ = unix.Nanosleep(&rest, nil) // a signal ends it early
				if l := time.Since(began) - nap; l >= minAway {
					late[i] += l
				}
			}
		})
	}
	do()
	ended.Store(true)
	threads.Wait()
	return slices.Max(late)
}
