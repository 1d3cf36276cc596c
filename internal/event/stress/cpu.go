package stress

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// slice is the period in which a part of a core is used: as short as the CPU quotas of
// nodes, so that the load is even.
const slice = 10 * time.Millisecond

// CPU keeps so many cores busy; 1.5 is one of them always and one half of the time.
func CPU(cores float64) Load {
	return func(ctx context.Context, ready func(...any) error) error {
		if !(cores > 0) || cores > 1024 {
			return fmt.Errorf("%w: %g cores", ErrInput, cores)
		}
		runtime.GOMAXPROCS(int(cores) + 2) // and one for whoever ends this
		var burning sync.WaitGroup
		for left := cores; left > 0; left-- {
			share := min(left, 1)
			burning.Go(func() { burn(ctx, share) })
		}
		err := ready()
		burning.Wait()
		return err
	}
}

// burn uses a share of one core.
func burn(ctx context.Context, share float64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for ctx.Err() == nil {
		begin := time.Now()
		for busy := time.Duration(share * float64(slice)); time.Since(begin) < busy; {
		}
		if share < 1 {
			time.Sleep(slice - time.Since(begin))
		}
	}
}
