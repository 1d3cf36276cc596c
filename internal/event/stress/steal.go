package stress

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/linger"
)

// A theft lasts as long as a busy host keeps a virtual processor from its guest: a few of its
// scheduler's slices.
const (
	minSteal = 5 * time.Millisecond
	maxSteal = 30 * time.Millisecond
)

// Steal takes one of the machine's processors away, now this one and now that one, for 5 to 30 ms
// at a time and such a share of all time, 0 to 0.9: what stands on it stands still, as where a
// host gives a virtual processor to others. It needs the right to the highest real-time
// priority, and tasks that are pinned to processors; others the kernel moves away.
func Steal(share float64, seed uint64) Load {
	return func(ctx context.Context, ready func(...any) error) error {
		if !(share > 0) || share > 0.9 {
			return fmt.Errorf("%w: a share of %g", ErrInput, share)
		}
		runtime.LockOSThread() // ends with the goroutine: its priority is not to be passed on
		var allowed unix.CPUSet
		if err := unix.SchedGetaffinity(0, &allowed); err != nil {
			return fmt.Errorf("asking for processors: %w", err)
		}
		if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 99}, 0); err != nil {
			return fmt.Errorf("taking the highest priority: %w", err)
		}
		if err := ready(); err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(seed, 0))
		for ctx.Err() == nil {
			theft := minSteal + time.Duration(random.Int64N(int64(maxSteal-minSteal)))
			if err := pinTo(nthAllowed(&allowed, random.IntN(allowed.Count()))); err != nil {
				return err
			}
			for begin := time.Now(); time.Since(begin) < theft; {
			}
			gap := float64(theft) * (1 - share) / share * (0.5 + random.Float64())
			_ = linger.For(ctx, time.Duration(gap)) // the loop looks at the context
		}
		return nil
	}
}

// nthAllowed is the number of the n-th one allowed.
func nthAllowed(allowed *unix.CPUSet, n int) int {
	for cpu := 0; ; cpu++ {
		if !allowed.IsSet(cpu) {
			continue
		}
		if n == 0 {
			return cpu
		}
		n--
	}
}

func pinTo(cpu int) error {
	var one unix.CPUSet
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("moving to processor %d: %w", cpu, err)
	}
	return nil
}
