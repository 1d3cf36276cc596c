package linktest

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/link/probe"
)

// sigmas is the permitted deviation of a random count: a larger one happens once in 5e8 tests.
const sigmas = 6

// checkBinomial checks a count of n independent events of probability p.
func checkBinomial(t *testing.T, what string, got, n int, p float64) {
	t.Helper()
	mean := float64(n) * p
	bound := sigmas*math.Sqrt(mean*(1-p)) + 1
	if math.Abs(float64(got)-mean) > bound {
		t.Errorf("%s: %d of %d, want %.0f ± %.0f", what, got, n, mean, bound)
	}
}

// checkOrder checks that no packet overtook another.
func checkOrder(t *testing.T, arrivals []probe.Arrival) {
	t.Helper()
	for i := 1; i < len(arrivals); i++ {
		if arrivals[i].Seq < arrivals[i-1].Seq {
			t.Errorf("packet %d arrived before packet %d", arrivals[i-1].Seq, arrivals[i].Seq)
			return
		}
	}
}

// findMissing returns the packets of n that did not arrive, in order.
func findMissing(arrivals []probe.Arrival, n int) []int {
	here := make([]bool, n)
	for _, a := range arrivals {
		here[a.Seq] = true
	}
	var gone []int
	for seq, ok := range here {
		if !ok {
			gone = append(gone, seq)
		}
	}
	return gone
}

// checkComplete checks that n packets arrived once each and in order.
func checkComplete(t *testing.T, arrivals []probe.Arrival, n int) {
	t.Helper()
	if gone := findMissing(arrivals, n); len(gone) > 0 {
		t.Errorf("%d of %d packets were lost, the first %d", len(gone), n, gone[0])
	}
	if len(arrivals) > n {
		t.Errorf("%d packets arrived of %d sent", len(arrivals), n)
	}
	checkOrder(t, arrivals)
}

func delays(arrivals []probe.Arrival) []time.Duration {
	ds := make([]time.Duration, len(arrivals))
	for i, a := range arrivals {
		ds[i] = a.Delay()
	}
	return ds
}

// maxAttempts bounds the repetition of a measurement that the machine may have disturbed.
const maxAttempts = 5

// earlyTolerance is the permitted earliness of a round trip: an engine may subtract its own estimated delays.
const earlyTolerance = 50 * time.Microsecond

// checkDelay measures until the quickest packet is not late, and checks that none is early. The lateness of other
// packets depends on the machine.
func (s *suite) checkDelay(t *testing.T, what string, want time.Duration, measure func() []time.Duration) {
	t.Helper()
	var quickest time.Duration
	for range maxAttempts {
		got := measure()
		if len(got) == 0 {
			t.Errorf("%s: nothing arrived", what)
			return
		}
		if quickest = slices.Min(got); quickest <= want+s.Slack {
			break
		}
	}
	if quickest < want-earlyTolerance-s.Early || quickest > want+s.Slack {
		t.Errorf("%s: the quickest packet took %v, want %v and at most %v more", what, quickest, want, s.Slack)
	}
}

// finding is the verdict on a figure that a busy machine may have affected.
type finding int

const (
	right finding = iota
	wrong         // outside the limit on a quiet machine, or consistently
	noisy         // the machine was never quiet for long enough
)

// A figure is measured up to maxTries times. It is wrong if the machine was quiet during minQuietTries of them.
const maxTries, minQuietTries = 20, 3

// judgeTries repeats a measurement until its relative error is within limit. An error counts as wrong if a processor was
// away for less than half of the limit, or if most tries agree: a busy machine affects each try differently. judgeTries
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
	// minAway is the lateness of a wake-up that indicates a lost processor. On an idle machine a wake-up is ten
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
