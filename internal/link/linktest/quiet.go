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

// What is found of a figure that a busy machine may have changed.
type finding int

const (
	right finding = iota
	wrong         // also while the machine was quiet, or always by the same
	noisy         // it never was for long enough
)

// A figure is measured up to mostTries times, and is wrong where the machine was quiet for quietTries of them.
const mostTries, quietTries = 20, 3

// judge tries until a figure is off by no more than limit, a share of it. One that never is counts against who
// is tested where little of a try's time was gone, by a processor that was away: no more than half of what is
// allowed. It does so too where most tries agree: what a busy machine does to a figure differs from try to try.
// It tells the tries.
func judge(limit float64, try func() (off, gone float64)) (finding, string) {
	var tries strings.Builder
	var all []float64
	for n, quiet := 0, 0; n < mostTries; n++ {
		off, gone := try()
		if math.Abs(off) <= limit {
			return right, ""
		}
		fmt.Fprintf(&tries, "off by %+.2f %% with a processor away for %.2f %% of the time; ", 100*off, 100*gone)
		all = append(all, off)
		if gone <= limit/2 {
			quiet++
		}
		if quiet == quietTries {
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
	// leastAway is how late a thread wakes up whose processor somebody else had; on an idle machine it is
	// a tenth of that.
	leastAway = 500 * time.Microsecond
)

// away is how long a processor was away while something was done, that of them which was so longest: on each
// a thread naps, and adds up by how much it woke up late.
func away(do func()) time.Duration {
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
			runtime.LockOSThread() // for good: the thread has one processor, and ends with the goroutine
			var one unix.CPUSet
			one.Set(i)
			_ = unix.SchedSetaffinity(0, &one) // elsewhere it tells of another processor
			for rest := unix.NsecToTimespec(int64(nap)); !ended.Load(); {
				began := time.Now()
				_ = unix.Nanosleep(&rest, nil) // a signal ends it early
				if l := time.Since(began) - nap; l >= leastAway {
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
